"""The warm-start measurement, with tiny numbers: it trains, resumes, and writes what it says."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from fairseq_for_tests import REPOSITORY, TRAINING, run

from owf_fairseq import USER_DIR
from owf_fairseq.checkpoints.checkpoint import read_checkpoint

SCRIPT = REPOSITORY / "scripts/measure/warm_start.py"


@pytest.fixture(scope="module")
def vanilla(data_bin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vanilla")
    run(
        "train",
        data_bin,
        "--user-dir",
        USER_DIR,
        "--arch",
        "owf_tiny",
        *TRAINING,
        "--max-update",
        "4",
        "--save-dir",
        folder,
    )
    return folder / "checkpoint_last.pt"


def measure(folder, *flags):
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--work", "work", "--output", "report", "--no-plot", *map(str, flags)],
        cwd=folder, capture_output=True, text=True, timeout=500,
    )  # fmt: skip


def test_it_measures_and_resumes(vanilla, data_bin, tmp_path):
    checkpoint = tmp_path / "vanilla.pt"
    shutil.copy(vanilla, checkpoint)
    flags = ["--data", data_bin, "--checkpoint", checkpoint, "--interval", "2", "--warmup", "1", "--max-tokens", "100"]
    done = measure(tmp_path, *flags, "--updates", "4")
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads((tmp_path / "report/warm_start.json").read_text())
    assert report["arch"] == "owf_tiny_one_wide_ffn"
    assert report["vanilla"] == {"arch": "owf_tiny", "updates": 4}
    curves = {curve["name"]: curve["loss"] for curve in report["curves"]}
    assert {name: list(loss) for name, loss in curves.items()} == {
        "from scratch": ["2", "4"],
        "warm start, mean": ["0", "2", "4"],
        "warm start, concat": ["0", "2", "4"],
    }
    page = (tmp_path / "report/README.md").read_text()
    assert "| updates | from scratch | warm start, mean | warm start, concat |" in page
    assert f"| 4 | {curves['from scratch']['4']:.3f} |" in page
    assert "warm start, concat: 2 of 4 updates" in done.stdout

    again = measure(tmp_path, *flags, "--updates", "4")
    assert again.returncode == 0
    assert again.stdout.count("trained before") == 3
    assert json.loads((tmp_path / "report/warm_start.json").read_text()) == report

    (tmp_path / "report/warm_start.json").rename(tmp_path / "kept.json")  # so that the page could be anybody's
    refused = measure(tmp_path, *flags, "--updates", "4")
    assert refused.returncode == 2
    assert "has a README.md that this script didn't make" in refused.stderr
    assert (tmp_path / "report/README.md").read_text() == page
    (tmp_path / "kept.json").rename(tmp_path / "report/warm_start.json")

    refused = measure(tmp_path, *flags, "--updates", "6")
    assert refused.returncode == 2
    assert "holds trainings with updates 4, not 6: give another `--work`" in refused.stderr

    # the vanilla model is trained again: as long with another seed, and longer
    state = read_checkpoint(checkpoint)
    state["model"]["encoder.layers.0.fc1.weight"] += 1
    torch.save(state, checkpoint)
    refused = measure(tmp_path, *flags, "--updates", "4")
    assert refused.returncode == 2
    assert "checkpoint_sha256" in refused.stderr
    assert "give another `--work`" in refused.stderr
    state["optimizer_history"][-1]["num_updates"] = 8
    torch.save({**state, "more": torch.zeros(1000)}, checkpoint)
    refused = measure(tmp_path, *flags, "--updates", "4")
    assert refused.returncode == 2
    assert "checkpoint_updates 4, not 8" in refused.stderr
    assert f"not {checkpoint.stat().st_size}; " in refused.stderr


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--updates", "5", "--interval", "2"], "--updates must be a multiple of --interval"),
        (["--checkpoint", "none.pt"], "none.pt can't be read"),
    ],
)
def test_it_refuses_before_it_trains(flags, problem, tmp_path):
    refused = measure(tmp_path, *flags)
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert not (tmp_path / "report").exists()
