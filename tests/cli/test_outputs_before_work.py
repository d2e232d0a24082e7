"""Outputs that can't be written are a sentence, and it comes before the work; no command writes to what it reads."""

import shutil

import pytest

from owf_fairseq import cli
from owf_fairseq.checkpoints import averaging, convert
from owf_fairseq.checkpoints.checkpoint import read_checkpoint, write_checkpoint
from owf_fairseq.export.export import COMMAND as EXPORT


@pytest.fixture
def run(copier, tmp_path):
    """A copy of a model and its data."""
    folder = tmp_path / "run"
    shutil.copytree(copier.parent.parent, folder)
    (folder / "file").write_text("a file, and no folder")
    return folder


def command(name, run, output):
    """A command line that would write to `output`, with ``--overwrite`` where there is such a flag."""
    model, text = str(run / "model/checkpoint_last.pt"), str(run / "test.en")
    own = {
        "average": [model, "--output", output],
        "convert": [model, "--to", "individual", "--output", output],
        "export": [model, "--data", str(run / "data"), "--output", output],
        "similarity": [model, "--src", text, "--ref", str(run / "test.de"), "--no-plots", "--cpu", "--output", output],
        "translate": [model, "--input", text, "--output", output, "--overwrite", "--cpu"],
        "distill": [model, "--train", str(run / "train"), "--langs=en-de", "--output", output, "--overwrite", "--cpu"],
        "shortlist": [str(run / "data"), "--output", output, "--overwrite"],
        "pairs": ["--input", text, text, "--output", output, f"{output}2", "--overwrite"],
        "evaluate": [text, "--ref", text, "--json", output, "--overwrite"],
        "benchmark": [model, "--json", output, "--overwrite", "--cpu"],
        "report": [text, "--output", output, "--overwrite"],
        "prepare": ["--train", str(run / "train"), "--valid", str(run / "valid"), "--langs=en-de", "--output", output],
    }  # fmt: skip
    return [name, *own[name]]


@pytest.mark.parametrize(
    "name",
    [
        *("average", "convert", "export", "similarity", "translate"),
        *("pairs", "evaluate", "benchmark", "report", "prepare", "distill", "shortlist"),
    ],
)
def test_a_parent_that_is_a_file_or_read_only(name, run, capsys):
    for place in (run / "file", "/proc/self"):
        assert cli.main(command(name, run, f"{place}/new/out")) == 2
        errors = capsys.readouterr().err
        assert f"{place} is not a folder that can be written to" in errors, errors
        assert "Traceback" not in errors
    assert (run / "file").read_text() == "a file, and no folder"


@pytest.mark.parametrize(
    ("name", "made_by"), [("average", averaging.COMMAND), ("convert", convert.COMMAND), ("export", EXPORT)]
)
def test_a_checkpoint_is_not_written_to_itself(name, made_by, run, capsys):
    """Not even one that the same command has made, which it may replace."""
    model = run / "model/checkpoint_last.pt"
    state = read_checkpoint(model)
    model.unlink()
    write_checkpoint(state, model, made_by)
    (run / "link").symlink_to(run / "model")
    before = model.read_bytes()
    assert cli.main(command(name, run, str(run / "link/checkpoint_last.pt"))) == 2
    assert "`--output`" in capsys.readouterr().err
    assert model.read_bytes() == before


def test_a_full_disk_is_a_sentence(run, capsys, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")

    monkeypatch.setattr("torch.save", full)
    assert cli.main(command("average", run, str(run / "out.pt"))) == 2
    assert "out.pt can't be written: PytorchStreamWriter failed writing" in capsys.readouterr().err
    assert not (run / "out.pt").exists()
