"""Where a training starts, and that it does not start again: finished, restored, damaged, and two at once."""

import shutil
from pathlib import Path

import pytest
import torch
from fairseq.file_io import PathManager

from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.files.lock import locked
from owf_fairseq.training.run import plan
from owf_fairseq.training.start import updates

LAST = "checkpoint_last.pt"


def updates_of(folder):
    return updates(read_checkpoint(Path(folder, LAST)))


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_finished_is_finished(owf):
    assert owf("--max-update", 4)[0] == 0
    before = contents("model")
    for words in (["--max-update", 4], ["--max-update", 3, "--log-interval", 2]):
        status, out, err, log = owf(*words)
        assert (status, out, log) == (0, "", "")
        assert err == (
            f"owf train: model is finished: 4 updates, and `--max-update` is {words[1]}; with a larger limit the "
            "training goes on\n"
        )
        assert contents("model") == before
    status, out, err, _ = owf("--max-update", 4, "--lr", 0.02)
    assert (status, out) == (2, "")
    assert "lr 0.02 (before: 0.01)" in err
    assert contents("model") == before
    assert "Loaded checkpoint model/checkpoint_last.pt" in owf("--max-update", 6)[3]
    assert updates_of("model") == 6
    Path("model/resolved.yaml").unlink()  # as fairseq-train itself leaves a folder
    assert "6 updates" in owf("--max-update", 6)[2]
    assert not Path("model/resolved.yaml").exists()


def test_what_ended_early_is_finished(owf):
    """By early stopping, which no checkpoint tells, and without the last checkpoint."""
    command = ["--max-epoch", 9, "--patience", 1, "--lr", 0, "--batch-size", 64, "--max-tokens-valid", 999]
    text = Path("c.yaml").read_text().replace("disable-validation: true\n", "")
    Path("c.yaml").write_text(text)
    assert "early stop since" in owf(*command)[3]
    assert updates_of("model") == 2
    Path("model", LAST).unlink()
    before = contents("model")
    status, out, err, log = owf(*command)
    assert (status, out, log) == (0, "", "")
    assert "model is finished: it ended by one of `--max-update`, `--max-epoch`, `--patience`" in err
    assert contents("model") == before


def test_all_epochs_are_finished(owf):
    assert owf("--max-epoch", 1, "--batch-size", 64)[0] == 0
    assert "1 epochs, and `--max-epoch` is 1;" in owf("--max-epoch", 1, "--batch-size", 64)[2]


def test_an_interrupted_training_is_not_finished(owf, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fairseq_cli.train.validate_and_save", interrupt)
        assert owf("--max-epoch", 1)[0] == 130
    assert owf("--max-epoch", 1)[3].count("num_updates=") == 8


@pytest.fixture
def first(owf):
    """A training of four updates in the folder `first`, to start from."""
    assert owf("--max-update", 4, "--save-dir", "first")[0] == 0
    return Path("first", LAST)


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (["--restore-file", f"first/{LAST}"], "@ 4 updates"),
        (["--restore-file", f"first/{LAST}", "--reset-dataloader", "--reset-meters"], "@ 4 updates"),
        (["--restore-file", f"first/{LAST}", "--reset-optimizer", "--reset-lr-scheduler"], "@ 0 updates"),
        (["--finetune-from-model", f"first/{LAST}"], "@ 0 updates"),
    ],
)
def test_the_same_command_goes_on_wherever_it_started(words, starts, first, owf):
    status, out, _, log = owf("--max-update", 6, *words)
    assert status == 0
    assert f"Loaded checkpoint {first}" in log
    assert starts in log
    assert words[0] in out
    done = 6
    for wanted in (7, 9):  # the second time the last checkpoint was written without the flags
        status, out, _, log = owf("--max-update", wanted, *words)
        assert status == 0
        assert "Loaded checkpoint model/checkpoint_last.pt" in log
        assert f"@ {done} updates" in log
        assert ("--restore-file" in out, "--reset-" in out) == (False, False)
        assert updates_of("model") == wanted
        done = wanted
    assert "9 updates" in owf("--max-update", 9, *words)[2]


def test_flags_for_a_folder_with_checkpoints_are_followed_once(first, owf):
    words = ["--save-dir", "first", "--reset-optimizer", "--reset-lr-scheduler", "--reset-dataloader"]
    assert "@ 0 updates" in owf("--max-update", 3, *words)[3]
    assert updates_of("first") == 3
    assert "@ 3 updates" in owf("--max-update", 5, *words)[3]
    # another start is another matter
    shutil.copy(first, "other.pt")
    assert (
        "Loaded checkpoint other.pt" in owf("--max-update", 6, "--save-dir", "first", "--restore-file", "other.pt")[3]
    )


def test_a_start_that_was_interrupted_before_its_first_checkpoint_is_made_again(first, owf, monkeypatch):
    """The last checkpoint is older than the start that is asked for."""
    shutil.copytree("first", "model")
    shutil.copy(first, "other.pt")
    command = ["c.yaml", ["--restore-file", "other.pt", "--max-update", "8"]]
    for _ in range(2):
        training = plan(*command)
        assert (training.start.checkpoint, training.start.followed) == (Path("other.pt"), False)
        assert training.flags["restore-file"] == ("other.pt",)
        monkeypatch.setattr("fairseq_cli.train.cli_main", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        assert owf(*command[1])[0] == 130


@pytest.mark.parametrize("keep", [0.3, 0.999])
def test_a_damaged_last_checkpoint_is_named_with_the_newest_whole_one(keep, owf):
    assert owf("--max-update", 6, "--save-interval-updates", 2)[0] == 0
    for name in (LAST, "checkpoint_1_6.pt"):
        path = Path("model", name)
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    before = contents("model")
    status, out, err, log = owf("--max-update", 8)
    assert (status, out, log) == (2, "", "")
    assert err.startswith("owf train: error: model/checkpoint_last.pt is cut off or damaged")
    assert err.endswith(". The newest whole one, of 4 updates: `--restore-file model/checkpoint_1_4.pt`\n")
    assert contents("model") == before
    way_out = ["--restore-file", "model/checkpoint_1_4.pt"]
    assert "@ 4 updates" in owf("--max-update", 8, *way_out)[3]
    assert "@ 8 updates" in owf("--max-update", 9, *way_out)[3]


def test_files_to_start_from_that_are_not_there(owf):
    """fairseq trains a new model without a word."""
    for flag in ("--restore-file", "--finetune-from-model"):
        status, out, err, _ = owf(flag, "nowhere.pt")
        assert (status, out) == (2, "")
        assert err.startswith("owf train: error: nowhere.pt can't be read: No such file or directory")
    assert not Path("model").exists()


def test_two_in_one_folder(first, owf):
    with locked(Path("first/.lock"), ""):
        before = contents("first")
        status, out, err, _ = owf("--max-update", 6, "--save-dir", "first")
        assert (status, out) == (2, "")
        assert err == (
            "owf train: error: another `owf train` writes to first now: wait, or give another `--save-dir`\n"
        )
        assert contents("first") == before
    assert owf("--max-update", 5, "--save-dir", "first")[0] == 0


def test_a_copy_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    """As fairseq makes checkpoint_last.pt and checkpoint_best.pt of a checkpoint that it has just written."""
    source, last = tmp_path / "checkpoint_1_2.pt", tmp_path / LAST
    torch.save({"new": torch.ones(1000)}, source)
    torch.save({"old": 1}, last)

    def fill_the_disk(source, target):
        Path(target).write_bytes(Path(source).read_bytes()[:500])
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", fill_the_disk)
        with pytest.raises(OSError, match="No space left"):
            PathManager.copy(str(source), str(last), overwrite=True)
    assert torch.load(last) == {"old": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, last.name]
    assert PathManager.copy(str(source), str(last), overwrite=True)
    assert last.read_bytes() == source.read_bytes()
