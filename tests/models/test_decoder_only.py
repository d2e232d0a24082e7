"""The decoder-only model against its definition, one sequence under one mask, in plain PyTorch; and its decoding."""

import argparse
import copy

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from models_for_tests import (
    PAD,
    VOCABULARY,
    all_weights,
    make_batch,
    make_model,
    one_stack_reference_logits,
    parse,
)

from owf_fairseq.errors import InputError
from owf_fairseq.sharing import ARCHS, is_decoder_only

ARCHITECTURES = sorted(arch for arch, (size, _) in ARCHS.items() if size == "decoder_only_tiny")
PRE_NORM = ["--decoder-normalize-before"]
RESTART = ["--target-positions", "restart"]


def test_the_architectures_are_there():
    configurations = ["", "_no_dec", "_one_wide_ffn", "_shared_dec"]
    assert [f"owf_decoder_only_tiny{name}" for name in configurations] == ARCHITECTURES
    for size in ("decoder_only", "decoder_only_small"):
        assert [arch for arch in ARCHS if ARCHS[arch][0] == size and is_decoder_only(arch)]


def make(arch, *flags, seed=1):
    return make_model(arch, *flags, seed=seed).double().eval()


def sentences(batch):
    """Source and target of each sentence, without padding."""
    for source, target in zip(batch["src_tokens"], batch["prev_output_tokens"], strict=True):
        yield source[source != PAD], target[target != PAD]


@pytest.mark.parametrize(
    "flags", [[], PRE_NORM, [*PRE_NORM, *RESTART], ["--decoder-self-attn", "shared"]], ids=" ".join
)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_forward_and_gradients_are_those_of_one_sequence_with_one_mask(arch, flags):
    model = make(arch, *flags)
    batch = make_batch([5, 3, 7, 1], [4, 6, 2, 5])
    logits, _ = model(**batch)
    weights = {name: tensor.detach().clone() for name, tensor in all_weights(model).items()}
    shared = {id(tensor): name for name, tensor in reversed(list(model.named_parameters(remove_duplicate=False)))}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        weights[name] = weights[shared[id(tensor)]]
    leaves = {name: weights[name].requires_grad_() for name, _ in model.named_parameters()}
    loss = expected_loss = 0
    for row, (source, target) in enumerate(sentences(batch)):
        expected = one_stack_reference_logits(model, weights, source, target, restart="restart" in flags)
        assert torch.allclose(logits[row, : len(target)], expected, atol=1e-9)
        factors = torch.linspace(-1, 1, expected.numel()).view_as(expected)
        expected_loss = expected_loss + (expected.log_softmax(-1) * factors).sum()
        loss = loss + (logits[row, : len(target)].log_softmax(-1) * factors).sum()
    loss.backward()
    expected_loss.backward()
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter.grad, leaves[name].grad, atol=1e-8), name
        assert parameter.grad.abs().sum() > 0, name


def test_every_target_position_sees_every_source_token_and_no_later_target():
    model = make("owf_decoder_only_tiny")
    batch = make_batch([6], [7])
    logits, _ = model(**batch)
    for position in range(6):
        changed = {**batch, "src_tokens": batch["src_tokens"].clone()}
        changed["src_tokens"][0, position] = 4 + (batch["src_tokens"][0, position] - 3) % 30
        assert ((model(**changed)[0] - logits).abs().amax(-1) > 1e-6).all(), position
    for position in range(1, 7):
        changed = {**batch, "prev_output_tokens": batch["prev_output_tokens"].clone()}
        changed["prev_output_tokens"][0, position] = 4 + (batch["prev_output_tokens"][0, position] - 3) % 30
        difference = (model(**changed)[0] - logits).abs().amax(-1)[0]
        assert (difference[:position] == 0).all()
        assert (difference[position:] > 1e-6).all()


@pytest.mark.parametrize("flags", [[], RESTART], ids=["continue", "restart"])
def test_padding_and_neighbours_change_nothing(flags):
    model = make("owf_decoder_only_tiny", *flags)
    batch = make_batch([5, 3, 8], [4, 7, 2])
    together, _ = model(**batch)
    for row, (source, target) in enumerate(sentences(batch)):
        pad_source, pad_target = source.new_full((3,), PAD), target.new_full((2,), PAD)
        for src in ([source], [pad_source, source], [source, pad_source]):
            for tgt, start in (([target], 0), ([target, pad_target], 0), ([pad_target, target], 2)):
                logits, _ = model(torch.cat(src)[None], torch.tensor([len(source)]), torch.cat(tgt)[None])
                own = logits[0, start : start + len(target)]
                assert torch.allclose(own, together[row, : len(target)], atol=1e-9)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("flags", [[], [*PRE_NORM, *RESTART, "--decoder-self-attn", "shared"]], ids=["", "other"])
@pytest.mark.parametrize("order", [None, [2, 0, 1, 1], [3, 3, 0], [0, 1, 2, 3]])
def test_step_by_step_is_the_whole_sequence_with_rows_reordered(arch, order, flags):
    model = make(arch, *flags)
    batch = make_batch([5, 3, 7, 4], [6, 6, 6, 6])
    rows, target = torch.arange(4), batch["prev_output_tokens"]
    encoder_out, state = model.encoder(batch["src_tokens"]), {}
    for step in range(target.size(1)):
        if order is not None and step == 3:
            chosen = torch.tensor(order)
            rows, target = rows[chosen], target[chosen]
            encoder_out = model.encoder.reorder_encoder_out(encoder_out, chosen)
            model.decoder.reorder_incremental_state_scripting(state, chosen)
        logits, _ = model.decoder(target[:, : step + 1], encoder_out=encoder_out, incremental_state=state)
        whole, _ = model(batch["src_tokens"][rows], None, target[:, : step + 1])
        assert torch.allclose(logits[:, -1], whole[:, -1], atol=1e-9)


def test_beams_share_the_sources_keys_and_values_and_nothing_is_copied_while_sentences_stay():
    model = make("owf_decoder_only_tiny")
    batch = make_batch([5, 3, 7], [2, 2, 2])
    encoder_out = model.encoder(batch["src_tokens"])
    beams = model.encoder.reorder_encoder_out(encoder_out, torch.arange(3).repeat_interleave(4))
    again = model.encoder.reorder_encoder_out(beams, torch.tensor([3, 1, 1, 0, 4, 5, 6, 7, 8, 8, 8, 8]))
    for name in ("source_keys", "source_values"):
        for tensors in zip(encoder_out[name], beams[name], again[name], strict=True):
            assert len({tensor.data_ptr() for tensor in tensors}) == 1
            assert tensors[0].shape[0] == 3
    assert again["src_lengths"][0].flatten().tolist() == [5] * 4 + [3] * 4 + [7] * 4
    without_second = model.encoder.reorder_encoder_out(again, torch.tensor([0, 1, 2, 3, 8, 9, 10, 11]))
    assert [keys.shape[0] for keys in without_second["source_keys"]] == [2] * 6
    assert torch.equal(without_second["source_keys"][2], encoder_out["source_keys"][2][[0, 2]])


def test_the_source_is_read_once(monkeypatch):
    from owf_fairseq.decoding.fairseq_backend import FairseqBackend
    from owf_fairseq.decoding.search import SearchOptions

    backend = FairseqBackend.from_arch("owf_decoder_only_tiny", VOCABULARY, cpu=True)
    (model,) = backend.models
    read = []
    original = model.decoder.read_source
    monkeypatch.setattr(model.decoder, "read_source", lambda tokens: read.append(tokens.shape) or original(tokens))
    found = backend.search([["w1", "w2"], ["w3"] * 5], SearchOptions(max_len_a=0, max_len_b=7, min_len=7))
    assert [len(one[0].pieces) for one in found] == [7, 7]
    assert read == [(2, 6)]


def test_the_reader_has_no_weights_and_copies_stay_whole():
    model = make("owf_decoder_only_tiny_shared_dec")
    assert not list(model.encoder.parameters())
    assert all(name.startswith("decoder.") for name in model.state_dict())
    twin = copy.deepcopy(model)
    assert twin.encoder._stack[0] is twin.decoder
    assert twin.decoder.layers[0].fc1 is twin.decoder.layers[5].fc1
    batch = make_batch([5, 3], [4, 6])
    assert torch.equal(twin(**batch)[0], model(**batch)[0])
    assert len([name for name in model.state_dict() if ".fc1.weight" in name]) == 1


def test_weights_of_the_attention_on_the_source_are_given():
    model = make("owf_decoder_only_tiny")
    batch = make_batch([5, 3], [4, 6])
    _, extra = model(**batch)
    (attention,) = extra["attn"]
    assert attention.shape == (2, 6, 5)
    assert (attention[1, :, :2] == 0).all()  # padding
    assert ((attention.sum(-1) > 0) & (attention.sum(-1) < 1)).all()


def test_activations_can_be_computed_again():
    flags = [*PRE_NORM, "--dropout", "0"]
    plain, checkpointed = (
        make_model("owf_decoder_only_tiny", *flags, *more).double().train()
        for more in ([], ["--checkpoint-activations"])
    )
    checkpointed.load_state_dict(plain.state_dict())
    batch = make_batch([5, 3], [4, 6])
    for model in (plain, checkpointed):
        model(**batch)[0].sin().sum().backward()
    for (name, one), other in zip(plain.named_parameters(), checkpointed.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-9), name


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--encoder-layers", "3"], "`--encoder-layers` is not for a decoder-only model"),
        (["--encoder-ffn", "shared"], "takes `--decoder-ffn`"),
        (["--encoder-layerdrop", "0.1"], "`--encoder-layerdrop` is not for a decoder-only model\n"),
        (["--encoder-normalize-before"], "`--encoder-normalize-before` is not for"),
        (["--decoder-cross-attn", "shared"], "it has no cross-attention"),
        (["--share-encoder-decoder-ffn"], "it has one stack"),
        (["--decoder-layerdrop", "0.1"], "source and target would skip different layers"),
        (["--target-positions", "none"], "must be one of continue, restart, but is 'none'"),
        (["--decoder-ffn", "cycle-7"], "`--decoder-ffn` must be one of"),
    ],
)
def test_flags_that_it_has_no_use_for_are_refused(flags, message, capsys):
    with pytest.raises(SystemExit) as end:
        parse("owf_decoder_only_tiny", *flags)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "used"), [([], 22), (RESTART, 12)], ids=["continue", "restart"])
def test_learned_positions_reach_from_source_to_target(flags, used):
    limits = ["--decoder-learned-pos", "--max-source-positions", "12", "--max-target-positions", "10"]
    model = make("owf_decoder_only_tiny", *limits, *flags)
    assert (model.encoder.max_positions(), model.decoder.max_positions()) == (12, 10)
    batch = make_batch([12, 3], [10, 6])
    model(**batch)[0].sum().backward()
    assert (model.decoder.embed_positions.weight.grad.abs().sum(1) > 0).sum() == used


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoder_embed_dim", 32),
        ("encoder_ffn_embed_dim", 32),
        ("encoder_attention_heads", 4),
        ("encoder_normalize_before", True),
        ("encoder_learned_pos", True),
        ("encoder_layers", 3),
        ("encoder_layerdrop", 0.1),
        ("encoder_ffn", "shared"),
    ],
)
def test_a_config_file_cannot_have_flags_of_an_encoder(name, value):
    args = argparse.Namespace(**{name: value})
    with pytest.raises(InputError, match=f"`--{name.replace('_', '-')}` is not for a decoder-only model"):
        ARCH_CONFIG_REGISTRY["owf_decoder_only_tiny"](args)


def test_a_saved_configuration_is_read_back_unchanged():
    args = parse("owf_decoder_only_tiny_one_wide_ffn", "--decoder-layers", "4", "--decoder-normalize-before")
    before = dict(vars(args))
    ARCH_CONFIG_REGISTRY[args.arch](args)
    assert vars(args) == before


def test_a_row_of_padding_alone_disturbs_nobody():
    model = make("owf_decoder_only_tiny")
    batch = make_batch([5, 3], [4, 6])
    alone, _ = model(**batch)
    sources, targets = (
        torch.cat([batch[name], torch.full_like(batch[name][:1], PAD)]) for name in ("src_tokens", "prev_output_tokens")
    )
    together, _ = model(sources, None, targets)
    assert torch.allclose(together[:2], alone, atol=1e-9)
    assert together.isfinite().all()


def test_half_precision_gives_nearly_the_same():
    model = make("owf_decoder_only_tiny")
    batch = make_batch([5, 3], [4, 6])
    whole = model(**batch)[0].log_softmax(-1)
    half = model.bfloat16()(**batch)[0].double().log_softmax(-1)
    assert (half - whole).abs().max() < 0.2
