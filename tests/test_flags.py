"""Contracts 8 and 10: the user's flags win over every arch; what cannot be right is refused, all of it at once."""

import argparse

import pytest
from fairseq import models
from models_for_tests import TINY_ARCHS, make_model, make_task, parse

from owf_fairseq import flag_checks
from owf_fairseq.errors import InputError
from owf_fairseq.flags import flag_name
from owf_fairseq.models import architectures
from owf_fairseq.plan import make_plan
from owf_fairseq.sharing import ARCHS, SIZES, configuration_of, is_decoder_only

USERS = {
    "encoder_ffn": "sequence-2",
    "decoder_ffn": "shared",
    "encoder_self_attn": "cycle-2",
    "decoder_self_attn": "shared",
    "decoder_cross_attn": "sequence-2",
    "ffn_layer_norm": "per-layer",
    "encoder_ffn_embed_dim": 96,
    "decoder_ffn_embed_dim": 80,
    "encoder_embed_dim": 32,
    "decoder_embed_dim": 32,
    "encoder_layers": 4,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "dropout": 0.25,
    "activation_fn": "gelu",
}


@pytest.mark.parametrize("arch", ARCHS)
def test_users_flags_win_over_every_arch(arch):
    users = dict(USERS)
    if ARCHS[arch][1] == "shared_enc_dec":  # the one FFN of both stacks allows fewer combinations
        users |= {"encoder_ffn": "shared", "decoder_ffn": "shared", "decoder_ffn_embed_dim": 96}
    if is_decoder_only(arch):  # whose flags are those of the decoder
        users = {name: value for name, value in users.items() if not name.startswith("encoder") and "cross" not in name}
    args = parse(arch, *(text for name, value in users.items() for text in (flag_name(name), str(value))))
    assert {name: getattr(args, name) for name in users} == users


@pytest.mark.parametrize("arch", ARCHS)
def test_without_flags_an_arch_is_its_size_and_configuration(arch):
    size, configuration = SIZES[ARCHS[arch][0]], configuration_of(arch)
    args = parse(arch)
    assert (args.encoder_layers, args.decoder_layers) == (size.encoder_layers, size.decoder_layers)
    assert args.encoder_embed_dim == args.decoder_embed_dim == size.embed_dim
    assert args.encoder_attention_heads == args.decoder_attention_heads == size.heads
    layers = size.encoder_layers + size.decoder_layers
    first, *others = size.stacks
    assert getattr(args, f"{first}_ffn_embed_dim") == size.ffn_dim * (layers if configuration.wide else 1)
    assert all(getattr(args, f"{stack}_ffn_embed_dim") == size.ffn_dim for stack in others)
    for name, value in configuration.flags.items():
        assert getattr(args, name) == value


def test_one_wide_ffn_follows_the_users_layers_and_yields_to_the_users_width():
    assert parse("owf_big_one_wide_ffn", "--encoder-layers", "4").encoder_ffn_embed_dim == 10 * 4096
    assert parse("owf_big_one_wide_ffn", "--encoder-ffn-embed-dim", "24576").encoder_ffn_embed_dim == 24576


def test_a_saved_configuration_is_read_back_unchanged():
    args = parse("owf_tiny_one_wide_ffn", "--encoder-layers", "4")
    before = dict(vars(args))
    models.ARCH_CONFIG_REGISTRY[args.arch](args)
    assert vars(args) == before


def problems(arch, *flags):
    """What is wrong, as fairseq's parser would give the flags to the arch function, which raises it."""
    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
    parser.add_argument("--ddp-backend")
    parser.add_argument("--quantization-config-path")
    models.ARCH_MODEL_REGISTRY[arch].add_args(parser)
    args = argparse.Namespace(arch=arch, **vars(parser.parse_args(flags)))
    with pytest.raises(InputError) as error:
        models.build_model(args, make_task())
    return error.value.problems


def test_on_the_command_line_bad_usage_is_one_sentence_and_status_2(capsys):
    with pytest.raises(SystemExit) as stopped:
        parse("owf_tiny", "--encoder-ffn", "cycle-7", "--decoder-cross-attn", "some")
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "error: `--encoder-ffn` must be one of" in lines[0]
    assert "error: `--decoder-cross-attn` must be one of" in lines[1]


@pytest.mark.parametrize(
    ("arch", "given", "expected"),
    [
        ("owf_tiny", ["--encoder-ffn", "cycle-7"], ["`--encoder-ffn`", "'cycle-7': 7 blocks for 6 layers"]),
        ("owf_tiny", ["--encoder-ffn", "0,0,1"], ["`--encoder-ffn` is '0,0,1'", "3 entries for 6 layers"]),
        ("owf_tiny", ["--decoder-cross-attn", "none"], ["`--decoder-cross-attn`", "nothing would read the source"]),
        ("owf_tiny", ["--decoder-cross-attn=-,-,-,-,-,-"], ["`--decoder-cross-attn`", "nothing would read the source"]),
        ("owf_decoder_only_tiny", ["--decoder-self-attn", "none"], ["nothing would read the source"]),
        ("owf_decoder_only_tiny", ["--decoder-ffn-widths", "8"], ["one number for each block", "individual`", "6"]),
        ("owf_tiny", ["--encoder-ffn-widths", "8,16"], ["`--encoder-ffn-widths`", "first use: 6, but is '8,16'"]),
        ("owf_tiny_cycle_2", ["--encoder-ffn-widths", "8,0"], ["numbers from 1 to 4,194,304", "'8,0'"]),
        ("owf_tiny_no_enc", ["--encoder-ffn-widths", "8"], ["`--encoder-ffn none`", "first use: 0, but is '8'"]),
        ("owf_tiny_shared_enc_dec", ["--encoder-ffn", "none"], ["needs `--encoder-ffn shared`", "'none'"]),
        (
            "owf_tiny_shared_enc_dec",
            ["--encoder-ffn-widths", "99"],
            ["`--encoder-ffn-widths` and `--decoder-ffn-embed-dim`", "99 and 128"],
        ),
        (
            "owf_tiny",
            ["--encoder-ffn-widths", "1,2,3,4,5,6", "--encoder-layers-to-keep", "0,2"],
            ["`--encoder-layers-to-keep`", "FFNs of different widths"],
        ),
        ("owf_tiny", ["--ffn-per-layer", "norm,bais"], ["norm, bias, scale, lora-R", "has 'bais'"]),
        ("owf_tiny", ["--ffn-per-layer", "lora-0"], ["has 'lora-0'"]),
        ("owf_tiny", ["--ffn-per-layer", "bias,bias"], ["it has bias twice"]),
        ("owf_tiny_shared_enc", ["--ffn-per-layer", "lora-65"], ["lora-65", "at most 64", "encoder"]),
        (
            "owf_tiny_shared_enc",
            ["--ffn-per-layer", "scale", "--quant-noise-pq", "0.1"],
            ["`--quant-noise-pq`", "`--ffn-per-layer` bias, scale or lora"],
        ),
        ("owf_tiny", ["--ffn-layer-norm", "own"], ["`--ffn-layer-norm`", "shared, per-layer", "'own'"]),
        ("owf_tiny_shared_enc", ["--share-encoder-decoder-ffn"], ["needs `--decoder-ffn shared`", "'individual'"]),
        ("owf_tiny_shared_enc_dec", ["--encoder-ffn-embed-dim", "96"], ["`--encoder-ffn-embed-dim`", "96 and 128"]),
        ("owf_tiny_shared_enc_dec", ["--encoder-normalize-before"], ["`--encoder-normalize-before`", "True and False"]),
        ("owf_tiny", ["--encoder-ffn-embed-dim", "0"], ["`--encoder-ffn-embed-dim`", "is 0", "`--encoder-ffn none`"]),
        ("owf_tiny", ["--decoder-ffn-embed-dim", "-5"], ["`--decoder-ffn-embed-dim` must be at least 1, but is -5"]),
        ("owf_tiny", ["--decoder-layers", "0"], ["`--decoder-layers` must be at least 1"]),
        ("owf_tiny", ["--encoder-attention-heads", "0"], ["`--encoder-attention-heads` must be at least 1"]),
        ("owf_tiny", ["--encoder-attention-heads", "7"], ["must divide `--encoder-embed-dim`", "7 and 64"]),
        ("owf_tiny", ["--ddp-backend", "fully_sharded"], ["`--ddp-backend fully_sharded`", "legacy_ddp"]),
        ("owf_tiny", ["--base-layers", "1"], ["`--base-layers`", "leave it out"]),
        ("owf_tiny", ["--cross-self-attention"], ["`--cross-self-attention`", "leave it out"]),
        ("owf_tiny_no_dec", ["--encoder-layers-to-keep", "0,2"], ["`--encoder-layers-to-keep`", "smaller number of"]),
        ("owf_tiny_no_dec", ["--decoder-layers-to-keep", "0,2"], ["`--decoder-layers-to-keep`", "smaller number of"]),
        ("owf_tiny_cycle_2", ["--quant-noise-scalar", "0.1"], ["`--quant-noise-scalar`", "first layer only"]),
        ("owf_tiny_cycle_2", ["--quantization-config-path", "x"], ["`--quantization-config-path`", "leave it out"]),
    ],
)
def test_refused_with_flag_value_and_way_out(arch, given, expected):
    (problem,) = problems(arch, *given)
    assert all(part in problem for part in expected), problem


def test_all_problems_are_reported_together():
    found = problems(
        "owf_tiny_shared_enc", "--encoder-ffn", "cycle-7", "--encoder-self-attn", "shred", "--ddp-backend",
        "fully_sharded", "--encoder-layers-to-keep", "1", "--decoder-ffn", "shared",
    )  # fmt: skip
    named = ["`--encoder-ffn`", "`--encoder-self-attn`", "fully_sharded", "`--encoder-layers-to-keep`"]
    assert len(found) == 4
    assert all(any(name in problem for problem in found) for name in named)


def test_checkpointed_activations_of_shared_blocks_need_legacy_ddp(monkeypatch):
    def plan(arch, backend):
        return make_plan(parse(arch, "--checkpoint-activations", "--ddp-backend", backend))

    plan("owf_tiny_shared_enc", "pytorch_ddp")  # one process: nothing to mark ready
    monkeypatch.setattr(flag_checks, "world_size", lambda: 2)
    plan("owf_tiny_shared_enc", "legacy_ddp")
    plan("owf_tiny", "pytorch_ddp")
    plan("owf_tiny_no_dec", "pytorch_ddp")  # dropped, but nothing shared
    monkeypatch.setattr(architectures, "is_parsing", lambda: False)
    for arch in ("owf_tiny_shared_enc", "owf_tiny_shared_enc_dec", "owf_tiny_attention_iis"):
        with pytest.raises(InputError, match="needs `--ddp-backend legacy_ddp`"):
            plan(arch, "pytorch_ddp")


def test_what_only_shared_blocks_forbid_is_allowed_without_them():
    for arch in ("owf_tiny", "owf_tiny_no_dec"):
        assert make_plan(parse(arch, "--quant-noise-scalar", "0.1"))
    args = parse("owf_tiny")
    args.encoder_layers_to_keep = "0,2"
    assert make_plan(args).is_vanilla


def test_a_value_that_is_no_pattern_is_refused_for_every_arch():
    for arch in TINY_ARCHS:
        assert problems(arch, "--encoder-self-attn", "sometimes")


def test_flags_combine_freely():
    model = make_model(
        "owf_tiny_one_wide_ffn", "--encoder-ffn", "sandwich", "--decoder-ffn", "cycle-rev-3", "--encoder-layers", "5"
    )
    widths = [layer.fc1.out_features for layer in (*model.encoder.layers, *model.decoder.layers)]
    assert widths == [11 * 128] * 5 + [128] * 6
    assert len({id(layer.fc1) for layer in model.encoder.layers}) == 3
    assert len({id(layer.fc1) for layer in model.decoder.layers}) == 3


def test_flags_are_on_every_arch_with_help():
    parser = argparse.ArgumentParser()
    models.ARCH_MODEL_REGISTRY["owf_tiny"].add_args(parser)
    text = parser.format_help()
    assert "cycle-rev-M" in "".join(text.split())  # it may be wrapped at a hyphen
    for name in ("encoder-ffn", "decoder-ffn", "share-encoder-decoder-ffn", "encoder-self-attn", "decoder-self-attn"):
        assert f"--{name}" in text


def test_widths_are_those_of_the_blocks_in_the_order_of_their_first_use():
    flags = ["--encoder-ffn", "0,0,1,-,1,2", "--encoder-ffn-widths", "512,2048,8192", "--decoder-ffn-embed-dim", "40"]
    plan = make_plan(parse("owf_tiny_shared_dec", *flags, "--decoder-ffn", "cycle-2"))
    assert plan.ffn_widths == [512, 512, 2048, 0, 2048, 8192, *[40] * 6]
    assert plan.ffn == [0, 0, 1, None, 1, 2, 6, 7, 6, 7, 6, 7]
    lists = {
        "encoder_ffn": [0, 0, 1, None, 1, 2],
        "encoder_ffn_widths": [512, 2048, 8192],
        "ffn_per_layer": ["norm", "bias"],
    }
    args = argparse.Namespace(arch="owf_tiny", **lists)  # as fairseq-hydra-train reads lists
    models.ARCH_CONFIG_REGISTRY["owf_tiny"](args)
    made = make_plan(args)
    assert made.ffn[:6] == [0, 0, 1, None, 1, 2]
    assert made.ffn_widths[:6] == [512, 512, 2048, 0, 2048, 8192]
    assert (made.per_layer.norm, made.per_layer.bias, made.per_layer.lora) == (True, True, 0)
