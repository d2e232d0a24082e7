"""`owf inspect`: the facts of real checkpoints, without their data."""

import json

import pytest
import torch
from fairseq_for_tests import TRAINING, run
from models_for_tests import checkpoint_of, make_model, parse

from owf_fairseq import USER_DIR, cli
from owf_fairseq.parameters import count_parameters


def inspect(path, capsys, *flags, status=0):
    assert cli.main(["inspect", str(path), *flags]) == status
    return capsys.readouterr().out


def facts(printed):
    return {line[:25].strip(): line[25:] for line in printed.splitlines()}


def test_trained_checkpoint(trained, capsys):
    found = facts(inspect(trained / "checkpoint_last.pt", capsys))
    assert found["arch"] == "owf_tiny_one_wide_ffn (One Wide FFN)"
    assert found["size"] == "6 + 6 layers, d 64, 2 heads, post-norm"
    assert found["encoder self-attention"] == "0 1 2 3 4 5"
    assert found["encoder FFN"] == "0 0 0 0 0 0   d_ff 1,536"
    assert found["decoder FFN"] == "– – – – – –"
    assert found["flags"] == "--share-all-embeddings"
    assert found["training"].endswith(", 8 updates")
    assert found["validation"].startswith("loss ")
    assert found["optimizer"].startswith("FairseqAdam: goes on without `--fp16`")
    assert found["ties"] == "hold: 7 shared tensors, each stored once"


def test_json(trained, capsys):
    found = json.loads(inspect(trained / "checkpoint_last.pt", capsys, "--json"))
    assert found["blocks"]["encoder FFN"] == [0] * 6
    assert found["blocks"]["decoder FFN"] == [None] * 6
    assert found["updates"] == 8
    assert found["bytes"] == (trained / "checkpoint_last.pt").stat().st_size
    vocabulary = len(
        torch.load(trained / "checkpoint_last.pt", weights_only=True)["model"]["encoder.embed_tokens.weight"]
    )
    assert found["parameters"] == count_parameters("owf_tiny_one_wide_ffn", vocabulary).total
    assert found["dtypes"] == ["float32"]
    assert found["metric"] == "loss"
    assert found["best"] <= found["score"]


def test_vanilla_checkpoint_of_fairseq(data_bin, tmp_path, capsys):
    size = ["--encoder-embed-dim", "64", "--encoder-ffn-embed-dim", "96", "--encoder-layers", "2"]
    run("train", data_bin, "--arch", "transformer", *size, *TRAINING, "--max-update", "2", "--save-dir", tmp_path)
    found = facts(inspect(tmp_path / "checkpoint_last.pt", capsys))
    assert found["arch"] == "transformer (plain fairseq)"
    assert found["size"] == "2 + 6 layers, d 64, 8 heads, post-norm"
    assert found["encoder FFN"] == "0 1   d_ff 96"
    assert found["decoder FFN"] == "0 1 2 3 4 5   d_ff 96"
    assert found["flags"] == (
        "--encoder-embed-dim 64 --encoder-ffn-embed-dim 96 --encoder-layers 2 --share-all-embeddings"
    )
    assert found["ties"] == "hold: 1 shared tensor, and 2 equal copies"


def save(path, arch, *flags, change=None):
    state = checkpoint_of(make_model(arch, *flags), parse(arch, *flags))
    if change:
        change(state)
    torch.save(state, path)
    return path


@pytest.mark.parametrize(
    ("arch", "flags", "shown"),
    [
        ("owf_tiny", ["--decoder-ffn", "none"], "owf_tiny (NoDec)"),
        ("owf_tiny", ["--decoder-ffn", "sandwich"], "owf_tiny (other)"),
    ],
)
def test_the_configuration_is_that_of_the_blocks(arch, flags, shown, tmp_path, capsys):
    path = save(tmp_path / "a.pt", arch, *flags)
    assert facts(inspect(path, capsys))["arch"] == shown
    assert facts(inspect(path, capsys))["flags"] == " ".join(flags)


def test_broken_ties_and_missing_weights_are_status_1(tmp_path, capsys):
    def change(state):
        state["model"]["encoder.layers.4.fc1.bias"] = state["model"]["encoder.layers.0.fc1.bias"] + 0.5
        del state["model"]["decoder.layers.0.fc1.bias"]

    path = save(tmp_path / "broken.pt", "owf_tiny_shared_enc", change=change)
    printed = inspect(path, capsys, status=1)
    assert "TIES BROKEN" in printed
    assert "encoder.layers.0.fc1.bias and encoder.layers.4.fc1.bias are one weight" in printed
    assert "they differ by up to 0.5" in printed
    assert facts(printed)["FAULT"] == "lacks decoder.layers.0.fc1.bias"


def test_weights_that_are_not_those_of_the_flags_are_status_1(tmp_path, capsys):
    def change(state):
        state["model"]["decoder.layers.6.fc1.bias"] = state["model"]["decoder.layers.5.fc1.bias"]
        state["model"]["encoder.layers.0.fc2.bias"] = torch.zeros(65)

    printed = inspect(save(tmp_path / "other.pt", "owf_tiny", change=change), capsys, status=1)
    assert "has decoder.layers.6.fc1.bias, which the model has not" in printed
    assert "has encoder.layers.0.fc2.bias of the shape 65, not 64" in printed


def test_one_ffn_for_both_stacks(tmp_path, capsys):
    found = facts(inspect(save(tmp_path / "a.pt", "owf_tiny_shared_enc_dec"), capsys))
    assert found["encoder FFN"] == "0 0 0 0 0 0   d_ff 128"
    assert found["decoder FFN"] == "0 0 0 0 0 0   d_ff 128, the encoder's"


@pytest.mark.parametrize(
    ("optimizer", "resume"),
    [
        ("FP16Optimizer", "goes on with `--fp16`, as it was trained; without it, give `--reset-optimizer`"),
        ("MemoryEfficientFP16Optimizer", "goes on with `--memory-efficient-fp16`"),
        ("FairseqAdam", "goes on without `--fp16`, as it was trained; with it, give `--reset-optimizer`"),
    ],
)
def test_what_training_can_go_on_with(optimizer, resume, tmp_path, capsys):
    def change(state):
        state["optimizer_history"][-1]["optimizer_name"] = optimizer

    found = facts(inspect(save(tmp_path / "a.pt", "owf_tiny", change=change), capsys))
    assert found["optimizer"].startswith(f"{optimizer}: {resume}")


def test_a_training_in_bfloat16_goes_on_in_it(tmp_path, capsys):
    def change(state):
        state["optimizer_history"][-1]["optimizer_name"] = "MemoryEfficientFP16Optimizer"
        state["cfg"]["common"] |= {"bf16": True, "memory_efficient_bf16": True}

    found = facts(inspect(save(tmp_path / "a.pt", "owf_tiny", change=change), capsys))
    assert found["optimizer"].startswith("MemoryEfficientFP16Optimizer: goes on with `--memory-efficient-bf16`")


def test_neither_data_nor_user_dir_is_needed(tmp_path, capsys):
    def change(state):
        state["cfg"]["common"]["user_dir"] = state["cfg"]["model"].user_dir = "moved/owf_fairseq"
        state["cfg"]["model"].data = "no/such/data"

    assert "owf_tiny" in inspect(save(tmp_path / "a.pt", "owf_tiny", change=change), capsys)


def test_made_by(trained, tmp_path, capsys):
    source, output = trained / "checkpoint_last.pt", tmp_path / "out.pt"
    assert cli.main(["convert", str(source), "--to", "individual", "--output", str(output)]) == 0
    capsys.readouterr()
    found = facts(inspect(output, capsys))
    assert found["made by"] == f"owf convert, from {source} (owf_tiny_one_wide_ffn)"
    assert found["flags"] == "--encoder-ffn-embed-dim 1536 --share-all-embeddings --decoder-ffn none"
    assert found["validation"] == "not validated"
    assert found["optimizer"].startswith("none: no optimizer state")


@pytest.mark.parametrize(
    ("arch", "problem"), [("lstm", "is of the arch 'lstm': only"), (None, "does not say which arch")]
)
def test_wrong_arch_is_status_2(arch, problem, tmp_path, capsys):
    def change(state):
        state["cfg"]["model"].arch = state["cfg"]["model"]._name = arch

    path = save(tmp_path / "a.pt", "owf_tiny", change=change)
    assert cli.main(["inspect", str(path)]) == 2
    assert problem in capsys.readouterr().err
    assert USER_DIR
