"""The contracts over layouts that nobody wrote down: drawn at random, over all flags together."""

import pytest
import torch
from layouts_for_tests import SEEDS, draw_layout, read_flags
from models_for_tests import (
    PAD,
    all_weights,
    make_batch,
    make_task,
    one_stack_reference_logits,
    reference_logits,
    step_by_step,
)
from torch.func import functional_call

from owf_fairseq.checkpoints.convert import target_args
from owf_fairseq.checkpoints.own_terms import merged_weight
from owf_fairseq.checkpoints.stored_model import StoredModel, build_model

BATCH = make_batch([5, 3], [4, 6])


@pytest.fixture(params=SEEDS, scope="module")
def layout(request):
    return draw_layout(request.param)


@pytest.fixture(scope="module")
def model(layout):
    return layout.build()


def test_the_layouts_are_many_and_have_everything():
    layouts = [draw_layout(seed) for seed in SEEDS]
    assert len({tuple(layout.flags) for layout in layouts}) >= 300
    given = [" ".join([layout.arch, *layout.flags]) for layout in layouts]
    for part in (
        "decoder-normalize-before", "layernorm-embedding", "ffn-widths", "share-encoder-decoder-ffn", "lora-", "scale",
        "bias", "norm,", "self-attn=none", "ffn=-", "middle", "sandwich", "last", "cycle-rev", "sequence",
        "decoder_only",
    ):  # fmt: skip
        assert any(part in flags for flags in given), part
    kinds = {"dropped cross-attention": "decoder_cross_attn", "dropped self-attention": "decoder_self_attn"}
    for what, name in kinds.items():
        assert sum(None in getattr(layout.plan, name) for layout in layouts) > 50, what


def logits(model):
    return model(**BATCH)[0]


def test_equals_plain_pytorch_without_what_is_dropped(model, layout):
    with torch.no_grad():
        found = logits(model)
        if layout.args.decoder_only:
            weights = {name: value.double() for name, value in all_weights(model).items()}
            for row, (source, target) in enumerate(zip(BATCH["src_tokens"], BATCH["prev_output_tokens"], strict=True)):
                source, target = source[source != PAD], target[target != PAD]
                expected = one_stack_reference_logits(model, weights, source, target)
                assert torch.allclose(found[row, : len(target)], expected, atol=1e-6)  # fairseq's softmax is in float32
            return
        seen = BATCH["prev_output_tokens"].ne(PAD)
        assert torch.allclose(found[seen], reference_logits(model, BATCH)[seen], atol=1e-6)


def test_sharing_equals_copies_in_output_and_gradient(model, layout):
    """A model with blocks of its own for every layer, fed with functions of the shared weights."""
    stored = StoredModel("layout", {"cfg": {"model": layout.args}, "model": {}}, layout.arch, layout.args, layout.plan)
    dictionary = model.decoder.dictionary
    untied = build_model(target_args(stored, "individual"), dictionary, dictionary).double().eval()
    shared = dict(model.named_parameters(remove_duplicate=False))
    copies = {}
    for name, copy in untied.named_parameters(remove_duplicate=False):
        linear, _, kind = name.rpartition(".")
        merge = kind == "weight" and linear.endswith(("fc1", "fc2"))
        copies[name] = merged_weight(shared, linear) if merge else shared[name]
        assert copies[name].shape == copy.shape
    results = []
    for run in (lambda: logits(model), lambda: functional_call(untied, copies, kwargs=BATCH, tie_weights=False)[0]):
        model.zero_grad()
        found = run()
        seen = found[BATCH["prev_output_tokens"].ne(PAD)]
        (seen * torch.linspace(-1, 1, seen.numel()).view_as(seen)).sum().backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        results.append((seen.detach(), gradients))
    (found, gradients), (expected, expected_gradients) = results
    assert torch.allclose(found, expected, atol=1e-9)
    assert gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, expected_gradients[name], atol=1e-8), name


def test_step_by_step_equals_at_once_with_beams_that_swap(model):
    tokens = BATCH["prev_output_tokens"].clamp(min=4).repeat_interleave(2, 0)
    tokens[:, 0] = 2
    tokens[1, 3:] = torch.tensor([9, 8, 7])
    orders = [torch.tensor(order) for order in ([1, 0, 2, 3], [0, 0, 3, 2], [1, 0, 2, 2])]
    with torch.no_grad():
        for found, expected in step_by_step(model, BATCH, tokens, orders):
            # fairseq's softmax is in float32
            assert torch.allclose(found, expected, atol=1e-5 * expected.abs().max().item())


def test_padding_neighbours_and_later_words_change_nothing_and_the_source_does(model):
    with torch.no_grad():
        together = logits(model)
        for row, (source, target) in enumerate([(5, 4), (3, 6)]):
            alone = {
                "src_tokens": BATCH["src_tokens"][row : row + 1, -source:],
                "src_lengths": BATCH["src_lengths"][row : row + 1],
                "prev_output_tokens": BATCH["prev_output_tokens"][row : row + 1, :target],
            }
            found = model(**alone)[0][0]
            assert torch.allclose(found, together[row, :target], atol=1e-6 * found.abs().max().item())
            later = {**alone, "prev_output_tokens": alone["prev_output_tokens"].clone()}
            later["prev_output_tokens"][0, -1] = 4 + (later["prev_output_tokens"][0, -1] + 3) % 30
            assert torch.equal(model(**later)[0][0][:-1], found[:-1])
            other = {**alone, "src_tokens": alone["src_tokens"].clone()}
            other["src_tokens"][0, 0] = 4 + (other["src_tokens"][0, 0] + 3) % 30
            assert not torch.allclose(model(**other)[0][0], found, atol=1e-9)


def test_saved_once_and_loaded_back(model, layout):
    state = model.state_dict()
    names = [name for name, _ in model.named_parameters(remove_duplicate=False) if name in state]
    assert sum(state[name].numel() for name in names) == sum(p.numel() for p in model.parameters())
    again = layout.build(seed=2)
    again.load_state_dict(state, strict=True)
    with torch.no_grad():
        assert torch.equal(logits(again), logits(model))


def test_layers_share_what_the_flags_say_and_nothing_else(model, layout):
    parameters = dict(model.named_parameters(remove_duplicate=False))
    own = layout.plan.per_layer
    expected = {
        "fc1.weight": False, "fc2.weight": False, "fc2.bias": False,
        "fc1.bias": own.bias, "fc1.scale": own.scale, "fc1.lora_a": own.lora > 0, "fc2.lora_b": own.lora > 0,
        "final_layer_norm.weight": own.norm, "final_layer_norm.bias": own.norm,
    }  # fmt: skip
    first_of_decoder = layout.args.encoder_layers
    for layers in layout.plan.ffn_users:
        names = [
            f"encoder.layers.{n}" if n < first_of_decoder else f"decoder.layers.{n - first_of_decoder}" for n in layers
        ]
        for part, is_own in expected.items():
            tensors = [parameters.get(f"{name}.{part}") for name in names]
            if len(layers) == 1 and part.split(".")[1] in ("scale", "lora_a", "lora_b"):
                assert tensors == [None]
            elif is_own:
                assert len({id(tensor) for tensor in tensors}) == len(layers)
            elif part.split(".")[1] in ("scale", "lora_a", "lora_b"):
                assert not any(tensor is not None for tensor in tensors)
            else:
                assert len({id(tensor) for tensor in tensors}) == 1
        [width] = {len(parameters[f"{name}.fc1.weight"]) for name in names}
        assert width == layout.plan.ffn_widths[layers[0]]


@pytest.mark.parametrize("terms", ["norm", "bias", "scale", "lora-2", "norm,bias,scale,lora-3"])
def test_training_begins_as_the_plain_shared_model(terms):
    """With the same seed the two have the same weights, and compute the same to the bit."""
    flags = ["--share-all-embeddings", "--encoder-ffn=cycle-2", "--decoder-ffn=0,-,0,0,-,1"]
    models = []
    for more in ([], [f"--ffn-per-layer={terms}"]):
        args = read_flags("owf_tiny", [*flags, *more])
        torch.manual_seed(1)
        dictionary = make_task().source_dictionary
        models.append(build_model(args, dictionary, dictionary).eval())
    plain, own = models
    assert sum(p.numel() for p in own.parameters()) > sum(p.numel() for p in plain.parameters())
    with torch.no_grad():
        assert torch.equal(logits(own), logits(plain))


def test_no_two_layers_begin_with_the_same_lora():
    """Also where nothing else is drawn between them."""
    flags = ["--encoder-ffn=shared", "--encoder-self-attn=shared", "--decoder-ffn=shared", "--ffn-per-layer=lora-4"]
    torch.manual_seed(1)
    dictionary = make_task().source_dictionary
    model = build_model(read_flags("owf_tiny", ["--share-all-embeddings", *flags]), dictionary, dictionary)
    starts = [p.flatten()[:64] for name, p in model.named_parameters() if name.endswith("lora_a")]
    assert len(starts) == 24
    assert len({tuple((start / start.norm()).tolist()) for start in starts}) == 24
