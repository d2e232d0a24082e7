"""Representations are what the model computes in training, of every layer, whatever the batch."""

import pytest
import torch
from fairseq.data import LanguagePairDataset
from models_for_tests import EOS, PAD, TINY_ARCHS, VOCABULARY, make_model, make_task

from owf_fairseq.analysis.representations import represent
from owf_fairseq.analysis.settings import CAPTURES

PRE_NORM = ("--encoder-normalize-before", "--decoder-normalize-before")
DICTIONARY = make_task().source_dictionary
LENGTHS = [(5, 9), (12, 3), (2, 2), (7, 7), (3, 11), (9, 4)]


def sentences(seed=4):
    generator = torch.Generator().manual_seed(seed)

    def sentence(length):
        return torch.cat([torch.randint(4, VOCABULARY, (length - 1,), generator=generator), torch.tensor([EOS])])

    return [(sentence(one), sentence(other)) for one, other in LENGTHS]


PAIRS = sentences()


def represented(model, pairs=PAIRS, **options):
    return represent(model.eval(), (DICTIONARY, DICTIONARY), pairs, **options)


def training_batch():
    """As fairseq's own dataset makes it for training."""
    data = LanguagePairDataset(
        [one for one, _ in PAIRS], [len(one) for one, _ in PAIRS], DICTIONARY,
        [other for _, other in PAIRS], [len(other) for _, other in PAIRS], DICTIONARY,
    )  # fmt: skip
    return data.collater([data[n] for n in range(len(data))])


def means(states, tokens, ids, without=(PAD,)):
    """The mean of (T, B, C) over the tokens (B, T) that count, in the order of the sentences."""
    counts = torch.ones_like(tokens, dtype=torch.bool)
    for symbol in without:
        counts &= tokens != symbol
    rows = [states[:, row][counts[row]].double().mean(0) for row in range(len(ids))]
    return torch.stack([rows[ids.index(number)] for number in range(len(ids))]).float()


def close(one, other):
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flags", [(), PRE_NORM], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_layers_are_those_of_the_training_forward(arch, flags):
    """The decoder reads the reference: what it computes is what training computes, dropout aside."""
    model = make_model(arch, *flags).eval()
    batch = training_batch()
    ids, net_input = batch["id"].tolist(), batch["net_input"]
    with torch.no_grad():
        encoded = model.encoder(net_input["src_tokens"], net_input["src_lengths"], return_all_hiddens=True)
        _, extra = model.decoder(net_input["prev_output_tokens"], encoder_out=encoded)
    for with_eos, without in ((True, (PAD,)), (False, (PAD, EOS))):
        found = represented(model, with_eos=with_eos)
        for stack, states, tokens in (
            ("encoder", encoded["encoder_states"], net_input["src_tokens"]),
            ("decoder", extra["inner_states"], net_input["prev_output_tokens"]),
        ):
            assert list(found[stack].layers) == [str(n) for n in range(6)]
            for number in range(6):
                # before the first layer's stands the embeddings' state
                expected = means(states[number + 1], tokens, ids, without)
                assert close(found[stack].layers[str(number)], expected), (stack, number)


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_components_are_named_in_the_order_of_the_computation(arch):
    model = make_model(arch)
    found = represented(model)
    for stack, kinds in (("encoder", ["sa"]), ("decoder", ["sa", "ca"])):
        expected = [
            f"{number}.{kind}"
            for number, layer in enumerate(getattr(model, stack).layers)
            for kind in [*kinds, *(["ffn"] if layer.has_feed_forward else [])]
        ]
        assert list(found[stack].modules) == expected
        assert list(found[stack].components) == expected + list(found[stack].layers)


@pytest.mark.parametrize("flags", [(), PRE_NORM], ids=["post-norm", "pre-norm"])
def test_sublayer_is_the_state_between_components(flags):
    model = make_model("owf_tiny", *flags)
    found = represented(model)
    for stack in found.values():
        for number in range(6):
            assert torch.equal(stack.modules[f"{number}.ffn"], stack.layers[str(number)])
    # the first self-attention by hand
    layer = model.encoder.layers[0]
    with torch.no_grad():
        for sentence, (source, _) in enumerate(PAIRS):
            x = model.encoder.forward_embedding(source[None])[0].transpose(0, 1)
            read = layer.self_attn_layer_norm(x) if flags else x
            state = x + layer.self_attn(read, read, read)[0]
            state = state if flags else layer.self_attn_layer_norm(state)
            assert close(found["encoder"].modules["0.sa"][sentence], state[:, 0].mean(0))


@pytest.mark.parametrize("arch", ["owf_tiny", "owf_tiny_one_wide_ffn", "owf_tiny_attention_sss"])
def test_module_is_what_is_added_to_that_state(arch):
    """Pre-norm, each state is the one before plus the module's output, and so are the means over tokens."""
    model = make_model(arch, *PRE_NORM)
    states, outputs = (represented(model, capture=capture) for capture in ("sublayer", "module"))
    for stack in states:
        labels = list(states[stack].modules)
        assert list(outputs[stack].modules) == labels
        for before, label in zip(labels, labels[1:], strict=False):
            added = states[stack].modules[label] - states[stack].modules[before]
            assert torch.allclose(outputs[stack].modules[label], added, atol=1e-4), label
        assert torch.equal(outputs[stack].layers["5"], states[stack].layers["5"])


def test_module_is_the_attentions_own_output_in_post_norm_too():
    model = make_model("owf_tiny_one_wide_ffn").eval()
    found = represented(model, capture="module")
    seen = []
    hook = model.decoder.layers[3].encoder_attn.register_forward_hook(lambda *call: seen.append(call[2][0]))
    batch = training_batch()
    with torch.no_grad():
        model(**batch["net_input"])
    hook.remove()
    expected = means(seen[0], batch["net_input"]["prev_output_tokens"], batch["id"].tolist())
    assert close(found["decoder"].modules["3.ca"], expected)


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("arch", ["owf_tiny", "owf_tiny_shared_enc_dec", "owf_decoder_only_tiny"])
def test_batches_and_padding_change_nothing(arch, capture):
    model = make_model(arch)
    together, alone = (represented(model, capture=capture, max_tokens=most) for most in (10_000, 1))
    for stack in together:
        assert together[stack].components.keys() == alone[stack].components.keys()
        for label, features in together[stack].components.items():
            assert features.shape == (len(PAIRS), 64)
            assert close(features, alone[stack].components[label]), label
    last = represented(model, PAIRS[-1:], capture=capture)
    assert close(last["decoder"].layers["5"][0], together["decoder"].layers["5"][-1])


def test_a_shared_block_is_captured_for_every_layer():
    model = make_model("owf_tiny_shared_enc_dec")
    assert len({id(layer.fc1) for stack in ("encoder", "decoder") for layer in getattr(model, stack).layers}) == 1
    for capture in CAPTURES:
        found = represented(model, capture=capture)
        for stack in found.values():
            rows = [stack.modules[f"{number}.ffn"] for number in range(6)]
            assert all(not close(one, other) for n, one in enumerate(rows) for other in rows[:n])


def test_decoder_only_at_source_and_target_positions():
    model = make_model("owf_decoder_only_tiny_one_wide_ffn").eval()
    found = represented(model)
    kinds = ("sa", "ffn")
    assert list(found["decoder"].modules) == [f"{n}.{kind}" for n in range(6) for kind in kinds]
    assert list(found["encoder"].modules) == [f"{n}.{kind}" for n in range(5) for kind in kinds]
    batch = training_batch()
    with torch.no_grad():
        _, extra = model(**batch["net_input"])
    tokens, ids = batch["net_input"]["prev_output_tokens"], batch["id"].tolist()
    for number in range(6):
        assert close(found["decoder"].layers[str(number)], means(extra["inner_states"][number + 1], tokens, ids))


def test_the_model_is_left_as_it_was():
    model = make_model("owf_tiny").eval()
    layers = [*model.encoder.layers, *model.decoder.layers]
    before = model(**training_batch()["net_input"])[0]
    represented(model)
    with pytest.raises(IndexError):
        represented(model, [(torch.tensor([VOCABULARY + 7, EOS]), PAIRS[0][1])])
    assert torch.equal(model(**training_batch()["net_input"])[0], before)
    for module in (*layers, model.encoder, model.decoder):
        assert "after_sublayer" not in vars(module)
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_checkpointed_activations_are_seen_too():
    plain, wrapped = make_model("owf_tiny"), make_model("owf_tiny", "--checkpoint-activations")
    one, other = (represented(model)["decoder"].components for model in (plain, wrapped))
    assert one.keys() == other.keys()
    assert all(close(one[label], other[label]) for label in one)
