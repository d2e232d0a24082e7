"""Every script: strict, documented, answers --help, and refuses what it doesn't know; the benchmark runs."""

import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys

import pytest
from fairseq_for_tests import REPOSITORY

FOLDER = REPOSITORY / "scripts"
PROGRAMS = [script for script in sorted(FOLDER.rglob("*.sh")) if script.name != "lib.sh"]
# a file whose name begins with _ is a part of another
PYTHON_PROGRAMS = [script for script in sorted(FOLDER.rglob("*.py")) if not script.name.startswith("_")]
DATASETS = [folder for folder in sorted(FOLDER.iterdir()) if (folder / "train.sh").exists()]
STEPS = ("download", "preprocess", "train", "generate", "evaluate")


def name_of(path):
    return path.relative_to(FOLDER).as_posix()


def run(*command):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=REPOSITORY.parent, timeout=300)


def test_there_are_scripts():
    assert {"quickstart.sh", "reproduce_tables.sh", "test.sh", "test_matrix.sh"} <= {script.name for script in PROGRAMS}
    assert {"bench_training.py", "bench_products.py", "warm_start.py"} <= {script.name for script in PYTHON_PROGRAMS}
    assert {"multi30k", "quickstart", "wmt22_en_de"} <= {folder.name for folder in DATASETS}


@pytest.mark.parametrize("script", PROGRAMS, ids=name_of)
def test_shell_script_is_strict_and_shows_an_example(script):
    text = script.read_text(encoding="utf-8")
    assert "\nset -euo pipefail\n" in text
    assert re.search(rf"^#   (\S.*=.* )?bash scripts/{re.escape(name_of(script))}", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 160
    shown = run("bash", script, "--help")
    assert shown.returncode == 0, shown.stderr
    assert f"bash scripts/{name_of(script)}" in shown.stdout
    assert "set -euo" not in shown.stdout


@pytest.mark.parametrize("folder", DATASETS, ids=name_of)
def test_a_dataset_has_all_scripts(folder):
    assert {script.name for script in folder.glob("*.sh")} >= {f"{step}.sh" for step in STEPS}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for step in STEPS:
        script = folder / f"{step}.sh"
        assert f"bash scripts/{name_of(script)}" in readme
        assert "# Environment: " in script.read_text(encoding="utf-8")
        assert step == "download" or "\nowf " in script.read_text(encoding="utf-8").replace("\n  owf ", "\nowf ")


@pytest.mark.parametrize("script", PYTHON_PROGRAMS, ids=name_of)
def test_python_script_shows_an_example(script, monkeypatch, capsys):
    for words, status in ((["--help"], 0), (["--no-such-flag"], 2)):
        monkeypatch.setattr(sys, "argv", [str(script), *words])
        monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
        with pytest.raises(SystemExit) as stopped:
            runpy.run_path(str(script), run_name="__main__")
        assert stopped.value.code == status
    out, err = capsys.readouterr()
    assert f"python scripts/{name_of(script)}" in out
    assert "--no-such-flag" in err or "required" in err


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
        sys.executable, REPOSITORY / "scripts/measure/bench_training.py", "--size", "tiny", "--rounds", "1",
        "--warmup", "0", "--updates", "2", "--max-tokens", "200", "--vocab-size", "100",
        "--threads", "1", "--json", report,
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


def test_training_benchmark_replaces_no_file_of_another_hand(tmp_path):
    mine = tmp_path / "mine.json"
    mine.write_text("{}")
    refused = run(sys.executable, REPOSITORY / "scripts/measure/bench_training.py", "--json", mine)
    assert refused.returncode == 2
    assert "exists: name another file" in refused.stderr
    assert mine.read_text() == "{}"


def test_training_benchmark_refuses_half_precision_on_a_cpu():
    refused = run(sys.executable, REPOSITORY / "scripts/measure/bench_training.py", "--fp16")
    assert refused.returncode == 2
    assert "--fp16 needs --device cuda" in refused.stderr


def test_benchmark_of_products_prints_both_kinds():
    what = ["--rows", "2", "--shapes", "64x32", "--runs", "1"]
    done = run(sys.executable, REPOSITORY / "scripts/measure/bench_products.py", *what)
    assert done.returncode == 0, done.stderr[-2000:]
    *_, row = done.stdout.strip().splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:2] == ["2", "64 x 32"]
    assert len(cells) == 7


def test_script_on_active_units_counts_them(copier, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("active_units", REPOSITORY / "scripts/measure/active_units.py")
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
