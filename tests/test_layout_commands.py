"""An explicit layout with everything in it, through `owf train`, fairseq's commands and all of our tools."""

import json

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq_for_tests import DECODING, TRAINING, run, text_sentences, train_on_text
from models_for_tests import make_batch, make_model
from test_two_processes import losses, train_together

from owf_fairseq import USER_DIR, cli
from owf_fairseq.checkpoints.checkpoint import read_checkpoint

SIZE = "--encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 64 --decoder-embed-dim 64"
LAYOUT = (
    "--encoder-ffn=-,0,0 --encoder-ffn-widths 96 --decoder-ffn 0,-,0 --ffn-per-layer norm,bias,scale,lora-4 "
    "--encoder-self-attn 0,1,- --decoder-self-attn 0,-,0 --decoder-cross-attn=-,0,0"
)
NORMS = "--encoder-normalize-before --decoder-normalize-before --share-all-embeddings"

CONFIG = """
arch: owf_tiny
task: translation
encoder-layers: 3
decoder-layers: 3
encoder-ffn: ["-", 0, 0]
encoder-ffn-widths: 96
decoder-ffn: 0,-,0
ffn-per-layer: [norm, bias, scale, lora-4]
encoder-self-attn: 0,1,-
decoder-self-attn: [0, -, 0]
decoder-cross-attn: -,0,0
share-all-embeddings: true
optimizer: adam
lr: 0.01
criterion: label_smoothed_cross_entropy
batch-size: 16
max-update: 4
required-batch-size-multiple: 1
num-workers: 0
log-format: simple
log-interval: 1
cpu: true
checkpoint-activations: true
save-dir: model
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small model that copies the sentences of a toy language."""
    return train_on_text(tmp_path_factory.mktemp("layout"), f"--arch owf_tiny {SIZE} {LAYOUT} {NORMS}", updates=700)


@pytest.fixture
def said(capsys):
    def run_owf(*command, status=0):
        capsys.readouterr()
        assert cli.main([*map(str, command)]) == status
        captured = capsys.readouterr()
        return captured.out + captured.err

    return run_owf


def test_it_learns_and_translates(trained, said, tmp_path):
    lines = text_sentences(20, seed=5)
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in lines))
    translated = said("translate", trained, "--input", tmp_path / "source", "--cpu").splitlines()
    assert sum(one == other for one, other in zip(lines, translated, strict=False)) >= 15
    flags = ["--user-dir", USER_DIR, "--path", trained, *DECODING, "--print-alignment"]
    aligned = run("generate", trained.parent.parent / "data", *flags)
    assert sum(line.startswith("A-") for line in aligned.splitlines()) == 20


def test_all_tools_take_it(trained, said, tmp_path):
    inspected = said("inspect", trained)
    assert "owf_tiny (other)" in inspected
    assert "encoder FFN              – 0 0   d_ff 96" in inspected
    assert "decoder self-attention   0 – 0" in inspected
    assert "decoder cross-attention  – 0 0" in inspected
    assert "ties                     hold" in inspected
    assert "--decoder-cross-attn=-,0,0" in inspected
    flags = [*SIZE.split(), *LAYOUT.split(), *NORMS.split()]
    symbols = len(read_checkpoint(trained)["model"]["encoder.embed_tokens.weight"])
    total = json.loads(said("params", "owf_tiny", *flags, "--vocab-size", symbols, "--json"))["archs"][0]["total"]
    assert f"{total:,}" in inspected
    source, data = trained.parent.parent / "test.en", ("--data", trained.parent.parent / "data")
    names = ("average.pt", "individual.pt", "again.pt")
    average, individual, again = (tmp_path / name for name in names)
    said("average", trained, "--output", average)
    assert "each layer's own terms merged" in said("convert", average, "--to", "individual", "--output", individual)
    texts = [said("translate", path, "--input", source, "--cpu", *data) for path in (trained, average, individual)]
    assert texts[0] == texts[1] == texts[2]
    back = said("convert", individual, "--to", "owf_tiny", *flags, "--output", again)
    assert "with norm,bias,scale,lora-4 of each layer's own, which gives back" in back
    exported = tmp_path / "exported"
    assert "verified" in said("export", trained, "--output", exported)
    served = said("translate", exported, "--input", source, "--cpu")
    assert sum(one == other for one, other in zip(texts[0].splitlines(), served.splitlines(), strict=True)) >= 19
    speed = ("--lengths", "4/5", "--sentences", "2", "--runs", "1", "--cpu", "--vocab-size", "99")
    assert "other" in said("benchmark", "owf_tiny", *flags, *speed)
    files = ["--src", source, "--ref", trained.parent.parent / "test.de", "--output", tmp_path / "similarity"]
    said("similarity", f"one={trained}", f"two={average}", *files, "--cpu")


def test_a_config_has_lists_and_training_goes_on(data_bin, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "row.yaml").write_text(f"{CONFIG}data: {data_bin}\n")
    for more in ([], ["--max-update", "6"]):
        vars(checkpoint_utils.save_checkpoint).pop("best", None)
        assert cli.main(["train", "row.yaml", *more]) == 0, capsys.readouterr().err
    assert "--encoder-ffn=-,0,0" in capsys.readouterr().out
    state = read_checkpoint(tmp_path / "model/checkpoint_last.pt")
    assert state["optimizer_history"][-1]["num_updates"] == 6
    weights = state["model"]
    assert "encoder.layers.0.fc1.weight" not in weights
    assert "decoder.layers.1.self_attn.q_proj.weight" not in weights
    assert "encoder.layers.2.fc1.weight" not in weights  # stored under the name of layer 1
    assert weights["encoder.layers.2.fc1.lora_b"].abs().max() > 0  # it has learnt


def test_two_processes_train_as_one(data_bin, tmp_path):
    flags = ["--arch", "owf_tiny", *SIZE.split(), *LAYOUT.split()]
    together = train_together(data_bin, tmp_path / "two", *flags, "--checkpoint-activations")
    more = ["--max-update", "4", "--dropout", "0", "--optimizer", "sgd", "--lr", "0.1", "--update-freq", "2"]

    alone = run("train", data_bin, "--user-dir", USER_DIR, *flags, *TRAINING, *more, "--save-dir", tmp_path / "one")
    assert len(losses(alone)) == 4
    assert losses(together) == pytest.approx(losses(alone), abs=2e-3)


@pytest.mark.parametrize("flags", [[], ["--memory-efficient-fp16"]], ids=["float32", "half precision"])
def test_training_moves_every_parameter(flags, data_bin, tmp_path):
    before = make_model("owf_tiny", *SIZE.split(), *LAYOUT.split())
    assert before(**make_batch([5, 3], [4, 6]))[0].isfinite().all()
    command = ["--arch", "owf_tiny", *SIZE.split(), *LAYOUT.split(), "--batch-size", "16", "--optimizer", "adam"]
    command += ["--lr", "0.01", "--criterion", "cross_entropy", "--cpu", "--num-workers", "0", "--seed", "1", *flags]
    command += ["--task", "translation", "--required-batch-size-multiple", "1", "--no-progress-bar"]
    states = []
    for updates in (1, 6):
        folder = tmp_path / str(updates)
        run("train", data_bin, "--user-dir", USER_DIR, *command, "--max-update", updates, "--save-dir", folder)
        states.append(read_checkpoint(folder / "checkpoint_last.pt")["model"])
    moved = {name for name, tensor in states[0].items() if not torch.equal(tensor, states[1][name])}
    fixed = {name for name in states[0] if name.endswith(("version", "_float_tensor"))}
    assert moved == states[0].keys() - fixed
