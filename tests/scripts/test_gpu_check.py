"""The check of a GPU: all of it in its small form, what it makes of a GPU's log, and parts that fail."""

import dataclasses
import importlib
import json
import os
import subprocess
import sys

import pytest
import yaml
from fairseq_for_tests import REPOSITORY

SCRIPT = REPOSITORY / "scripts/gpu_check.sh"


@pytest.fixture
def gpu_check(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    return importlib.import_module("gpu_check")


@pytest.fixture
def training_log(gpu_check):
    return importlib.import_module("training_log")


def check(*arguments, environment=()):
    # with no virtual environment of its own, it takes the first Python on the PATH that has fairseq: ours
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PATH": path, **dict(environment)}
    environment.setdefault("OWF_VENV", "no-such-folder")
    return subprocess.run(
        ["bash", str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=500
    )


def rows_of(output):
    return json.loads((output / "results.json").read_text(encoding="utf-8"))["rows"]


def test_everything_runs_without_a_gpu(tmp_path):
    done = check("--output", tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    rows = rows_of(tmp_path)
    vanilla, no_dec, wide = "owf_small", "owf_small_no_dec", "owf_small_one_wide_ffn"
    decoder_only = "owf_decoder_only_small"
    assert [(row["part"], row["model"]) for row in rows] == [
        ("train-tiny", "owf_tiny"),
        ("train-vanilla", vanilla),
        ("train-one-wide", wide),
        ("train-decoder-only", decoder_only),
        ("decoding, batch 1", vanilla),
        ("decoding, batch 1", no_dec),
        ("decoding, batch 1", wide),
        ("decoding, batch 1", decoder_only),
        ("sweep, batch 1", vanilla),
        ("sweep, batch 1", wide),
        ("sweep, batch 8", vanilla),
        ("sweep, batch 8", wide),
    ]
    for row in rows[:4]:
        first, last = row["training"]["loss"]
        assert 1 < last < 0.9 * first
        assert row["training"]["tokens_per_s"] > 0
        assert row["training"]["loss_scale"] is None  # single precision
    for row in rows[4:]:
        assert row["decoding"]["tokens_per_s"]["mean"] > 0
    assert all(row["failure"] is None for row in rows)

    # the table is what is printed last, and is in the folder too
    header, rule, *lines = done.stdout[done.stdout.index("\npart ") + 1 :].splitlines()
    assert header.split()[:3] == ["part", "model", "tokens/s"]
    assert [line.split()[-1] for line in lines[: len(rows)]] == ["ok"] * len(rows)
    assert "CPU; owf_fairseq" in lines[len(rows) + 1]
    assert "No GPU: small models in single precision" in lines[len(rows) + 2]
    assert "Decoding: single precision" in lines[len(rows) + 3]
    assert len(lines) == len(rows) + 4
    markdown = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert markdown.count("| ok |") == len(rows)
    assert (tmp_path / "train-tiny.log").exists()
    assert json.loads((tmp_path / "sweep.json").read_text(encoding="utf-8"))["kind"] == "benchmark"


def test_a_part_that_fails_is_a_row_and_the_others_run(gpu_check, monkeypatch, tmp_path, capsys):
    """One part has data that nobody wrote, one has no time."""
    budgets = {**gpu_check.WITHOUT_GPU.budgets, "decoding": 0.1}
    monkeypatch.setattr(gpu_check, "WITHOUT_GPU", dataclasses.replace(gpu_check.WITHOUT_GPU, budgets=budgets))
    monkeypatch.setattr(gpu_check, "find_device", lambda: "CPU")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert gpu_check.main(["--output", str(tmp_path), "--only", "train-tiny", "decoding", "sweep"]) == 1
    training, decoding, *sweep = rows_of(tmp_path)
    assert (training["part"], training["model"], decoding["part"]) == ("train-tiny", "owf_tiny", "decoding")
    assert "exit status 1" in training["failure"]
    assert "FileNotFoundError" in training["failure"]  # what the log tells, and where it is
    assert str(tmp_path / "train-tiny.log") in training["failure"]
    assert "stopped after its 0 s" in decoding["failure"]
    assert len(sweep) == 4
    assert not any(row["failure"] for row in sweep)
    table = capsys.readouterr().out.split("\npart ")[1]
    assert [line.split()[-1] for line in table.splitlines()[2:8]] == ["FAILED", "FAILED", "ok", "ok", "ok", "ok"]
    assert f"FAILED: decoding, -: {decoding['failure']}" in table


def gpu_log(losses, scales, free):
    """What fairseq-train prints on a GPU in half precision, the lines that matter."""
    lines = [
        "2026-11-30 | INFO | fairseq.utils | rank   0: capabilities =  9.0  ; total memory = 139.805 GB ; name = H200",
        "2026-11-30 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale "
        "to: 64.0",
    ]
    for loss, scale, gigabytes in zip(losses, scales, free, strict=True):
        stats = {"epoch": 1, "loss": str(loss), "wps": "50000.5", "loss_scale": str(scale), "gb_free": str(gigabytes)}
        lines.append(f"2026-11-30 | INFO | train_inner | {json.dumps(stats)}")
    lines.append('2026-11-30 | INFO | train | {"epoch": 1, "train_loss": "1", "train_wps": "7", "train_gb_free": "1"}')
    return "\n".join(lines)


FALLING = [15 - 0.5 * update for update in range(12)]


def test_log_of_a_gpu_is_understood(training_log):
    training = training_log.read_training(gpu_log(FALLING, [64] * 11 + [32], [139.0, *[120.1] * 10, 130.0]))
    assert training.logged == 12
    assert training.tokens_per_s == 50000.5
    assert training.loss == (14, 10.5)
    assert training.loss_scale == (64, 32)
    assert training.overflows == 1
    assert training.peak_gb == pytest.approx(19.705)
    assert training.problems() == []


@pytest.mark.parametrize(
    ("losses", "scales", "problem"),
    [
        ([15.0] * 11 + [14.0], [64] * 12, "the loss went from 15.00 to 14.80"),
        ([*FALLING[:-1], "nan"], [64] * 12, "the loss went from 14.00 to nan"),
        (FALLING, [2.0 ** (6 - update) for update in range(12)], "overflowed 1 times, to a loss scale of 0.03125"),
    ],
)
def test_training_that_is_not_healthy_fails(gpu_check, losses, scales, problem):
    plan = dataclasses.replace(gpu_check.WITH_GPU, updates=12)
    log = gpu_log(losses, scales, [120.0] * 12)
    [row] = gpu_check.training_row(log, "train-tiny", "owf_tiny", plan)
    assert problem in row.failure
    assert row.training is not None  # the numbers are shown nevertheless


def test_a_training_in_single_precision_is_none_of_half_precision(gpu_check):
    plan = dataclasses.replace(gpu_check.WITH_GPU, updates=12)
    log = gpu_log(FALLING, [64] * 12, [120.0] * 12).replace("loss_scale", "scale_of_loss")
    [row] = gpu_check.training_row(log, "train-tiny", "owf_tiny", plan)
    assert row.failure == "no loss scale was logged: it did not train in half precision"
    [row] = gpu_check.training_row(log, "train-tiny", "owf_tiny", dataclasses.replace(plan, updates=20))
    assert "12 updates were logged, not 20" in row.failure


def test_with_a_gpu_everything_is_in_half_precision_and_takes_9_minutes_at_most(gpu_check, tmp_path):
    parts = {part.name: part for part in gpu_check.parts(gpu_check.WITH_GPU, tmp_path, tmp_path)}
    assert sum(part.seconds for part in parts.values()) + gpu_check.PROBE_SECONDS <= 9 * 60 - 15  # to start
    data = parts.pop("data")
    assert "fairseq_cli.preprocess" in data.command
    for part in parts.values():
        assert "--fp16" in part.command
        assert "--cpu" not in part.command
    trainings = {name: part.command for name, part in parts.items() if name.startswith("train-")}
    big = ["owf_big", "owf_big_one_wide_ffn", "owf_decoder_only"]
    assert [command[-1] for command in trainings.values()] == ["owf_tiny", *big]
    assert {"owf_big_no_dec", *big} < set(parts["decoding"].command)
    paper = yaml.safe_load((REPOSITORY / "configs/_paper.yaml").read_text(encoding="utf-8"))
    for command in trainings.values():  # the peak of memory is that of the configs' batches
        assert int(command[command.index("--max-tokens") + 1]) == paper["max-tokens"] == 3584
    assert "1,8,32,128,512" in parts["sweep"].command


def test_it_says_how_to_install_what_it_needs(tmp_path):
    without = tmp_path / "python3"
    without.write_text("#!/bin/sh\nexit 1\n")
    without.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    refused = check("--output", tmp_path / "out", environment={"PATH": path, "OWF_VENV": str(tmp_path)})
    assert refused.returncode == 1
    assert "no Python with torch and fairseq" in refused.stderr
    assert not (tmp_path / "out").exists()
