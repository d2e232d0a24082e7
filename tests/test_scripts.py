"""Every script: strict, documented, answers --help, and refuses what it doesn't know; the benchmark runs."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from fairseq_for_tests import REPOSITORY

SCRIPTS = sorted((REPOSITORY / "scripts").rglob("*.sh"))
PROGRAMS = [script for script in SCRIPTS if script.name != "lib.sh"]
PYTHON_PROGRAMS = sorted((REPOSITORY / "scripts").rglob("*.py"))


def name_of(path):
    return path.name


def run(*command):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=REPOSITORY.parent, timeout=300)


def test_there_are_scripts():
    assert {"quickstart.sh", "test.sh", "test_matrix.sh"} <= {script.name for script in PROGRAMS}
    assert {"bench_training.py", "bench_products.py", "warm_start.py"} <= {script.name for script in PYTHON_PROGRAMS}


@pytest.mark.parametrize("script", PROGRAMS, ids=name_of)
def test_shell_script_is_strict_and_shows_an_example(script):
    text = script.read_text(encoding="utf-8")
    assert "\nset -euo pipefail\n" in text
    assert f"#   bash scripts/{script.name}" in text
    shown = run("bash", script, "--help")
    assert shown.returncode == 0, shown.stderr
    assert f"bash scripts/{script.name}" in shown.stdout
    assert "set -euo" not in shown.stdout


@pytest.mark.parametrize("script", PYTHON_PROGRAMS, ids=name_of)
def test_python_script_shows_an_example(script):
    shown = run(sys.executable, script, "--help")
    assert shown.returncode == 0, shown.stderr
    assert f"python scripts/{script.name}" in shown.stdout
    refused = run(sys.executable, script, "--no-such-flag")
    assert refused.returncode == 2
    assert "--no-such-flag" in refused.stderr or "required" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(["--fast"], "unknown argument --fast"), (["--langs"], "--langs needs a value"), (["--archs", " "], "--archs")],
)
def test_quickstart_refuses_before_it_does_anything(arguments, problem):
    refused = run("bash", REPOSITORY / "scripts/quickstart.sh", *arguments)
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert refused.stdout == ""


def test_interpreter_that_does_not_fit_is_refused(tmp_path):
    environment = {**os.environ, "PYTHON": "no-such-python", "OWF_VENV": str(tmp_path / "venv")}
    refused = subprocess.run(
        ["bash", str(REPOSITORY / "scripts/quickstart.sh")], capture_output=True, text=True, env=environment
    )
    assert refused.returncode == 2
    assert "PYTHON=no-such-python must be Python 3.10, 3.11 or 3.12" in refused.stderr
    assert not (tmp_path / "venv").exists()


def test_training_benchmark_compares_equals_as_equals(tmp_path):
    """fairseq's own model and ours make the same updates: the last loss is the same number."""
    report = tmp_path / "report.json"
    done = run(
        sys.executable, REPOSITORY / "scripts/bench_training.py", "--size", "tiny", "--rounds", "1", "--warmup", "0",
        "--updates", "2", "--max-tokens", "200", "--vocab-size", "100", "--threads", "1", "--json", report,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "owf_tiny / transformer: speed" in done.stdout
    measured = json.loads(report.read_text())
    theirs, ours, wide = measured["contestants"]
    assert theirs["loss"] == ours["loss"] != wide["loss"]
    assert [(r["arch"], r["to"]) for r in measured["ratios"]] == [
        ("owf_tiny", "transformer"),
        ("owf_tiny_one_wide_ffn", "owf_tiny"),
    ]
    assert all(r["speed"] > 0 and r["memory"] > 0 for r in measured["ratios"])


def test_training_benchmark_refuses_half_precision_on_a_cpu():
    refused = run(sys.executable, REPOSITORY / "scripts/bench_training.py", "--fp16")
    assert refused.returncode == 2
    assert "--fp16 needs --device cuda" in refused.stderr


def test_benchmark_of_products_prints_both_kinds():
    what = ["--rows", "2", "--shapes", "64x32", "--runs", "1"]
    done = run(sys.executable, REPOSITORY / "scripts/bench_products.py", *what)
    assert done.returncode == 0, done.stderr[-2000:]
    *_, row = done.stdout.strip().splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:2] == ["2", "64 x 32"]
    assert len(cells) == 7


def bash(script, folder):
    """Runs a few lines of bash that read lib.sh, with the steps of a run in ``folder``."""
    lines = f"set -euo pipefail\n. '{REPOSITORY}/scripts/lib.sh'\nSTEPS='{folder}/steps'\n{script}"
    return subprocess.run(["bash", "-c", lines], capture_output=True, text=True, cwd=folder, timeout=60)


def test_a_step_that_failed_is_done_again_and_a_finished_one_is_not(tmp_path):
    first = bash("step one touch one; step two false; step three touch three", tmp_path)
    assert first.returncode != 0
    assert (tmp_path / "one").exists()
    assert not (tmp_path / "three").exists()
    (tmp_path / "one").unlink()
    second = bash("step one touch one; step two touch two; step three touch three", tmp_path)
    assert second.returncode == 0, second.stderr
    assert "one: done before" in second.stdout
    assert not (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()
    assert (tmp_path / "three").exists()


def test_a_step_that_was_killed_is_done_again(tmp_path):
    killed = bash('step one bash -c "kill -9 $$"', tmp_path)
    assert killed.returncode != 0
    assert not list((tmp_path / "steps").glob("*.done"))
    assert bash("step one touch one", tmp_path).returncode == 0
    assert (tmp_path / "one").exists()


def test_a_run_folder_with_other_settings_is_refused(tmp_path):
    begun = "same_settings run/settings.txt 'langs: en-de'"
    assert bash(begun, tmp_path).returncode == 0
    assert bash(begun, tmp_path).returncode == 0
    other = bash("same_settings run/settings.txt 'langs: en-ro'", tmp_path)
    assert other.returncode == 2
    assert "was begun with other settings" in other.stderr
    assert "en-ro" in other.stderr


def test_script_on_active_units_counts_them(copier, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("active_units", REPOSITORY / "scripts/active_units.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "BIG", (4, 16))
    assert script.main([str(copier), "--input", str(copier.parent.parent / "test.en"), "--runs", "1"]) == 0
    lengths, products = (table.splitlines()[2:] for table in capsys.readouterr().out.strip().split("\n\n"))
    for row in lengths:
        *_, one, any_word = row.strip("| ").split("|")
        assert 0 < float(one) < float(any_word) <= 100
    assert len(products) == 6
    assert script.main([str(copier), "--input", "nowhere"]) == 2
