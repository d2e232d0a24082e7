"""Every script: strict, documented, answers --help, and refuses what it doesn't know; the benchmark runs."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest
from fairseq_for_tests import REPOSITORY

FOLDER = REPOSITORY / "scripts"
SHARED = {"lib.sh", "recipe.sh", "walk.sh", "languages.sh"}
"""Read by the other scripts."""
PROGRAMS = [script for script in sorted(FOLDER.rglob("*.sh")) if script.name not in SHARED]
PYTHON_PROGRAMS = sorted(FOLDER.rglob("*.py"))
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
    assert f"#   bash scripts/{name_of(script)}" in text
    shown = run("bash", script, "--help")
    assert shown.returncode == 0, shown.stderr
    assert f"bash scripts/{name_of(script)}" in shown.stdout
    assert "set -euo" not in shown.stdout


@pytest.mark.parametrize("folder", DATASETS, ids=name_of)
def test_a_dataset_has_all_scripts_which_document_their_flags(folder):
    assert {script.name for script in folder.glob("*.sh")} >= {f"{step}.sh" for step in STEPS}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for step in STEPS:
        script = folder / f"{step}.sh"
        assert f"bash scripts/{name_of(script)}" in readme
        text = script.read_text(encoding="utf-8")
        flags = re.findall(r"--[a-z-]+", re.search(r'^parse "([^"]*)"', text, re.MULTILINE).group(1))
        for flag in [*flags, "--output"]:
            assert f"\n# {flag} " in text, f"{name_of(script)}: {flag} is not in its --help"


@pytest.mark.parametrize("folder", DATASETS, ids=name_of)
def test_a_dataset_refuses_before_it_does_anything(folder, tmp_path):
    """What it doesn't know, and to do a step before the one that it needs."""
    output = tmp_path / "output"
    refused = run("bash", folder / "download.sh", "--output", output, "--no-such-flag")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "unknown argument --no-such-flag" in refused.stderr
    refused = run("bash", folder / "download.sh", "--output", output, "--limit", "many")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--limit must be a whole number above 0, but is many" in refused.stderr
    for step, needed in (("preprocess", "download"), ("train", "preprocess"), ("generate", "download")):
        config = [] if step == "preprocess" else ["some"]
        refused = run("bash", folder / f"{step}.sh", *config, "--output", output)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"run scripts/{folder.name}/{needed}.sh first" in refused.stderr
    assert not output.exists()


@pytest.mark.parametrize("script", PYTHON_PROGRAMS, ids=name_of)
def test_python_script_shows_an_example(script):
    shown = run(sys.executable, script, "--help")
    assert shown.returncode == 0, shown.stderr
    assert f"python scripts/{name_of(script)}" in shown.stdout
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


def test_without_owf_it_says_how_to_install_it(tmp_path):
    (tmp_path / "train.en").touch()
    (tmp_path / "train.de").touch()
    command = ["bash", FOLDER / "multi30k/download.sh", "--local", tmp_path, "--output", tmp_path / "run"]
    environment = {"PATH": os.defpath, "OWF_VENV": str(tmp_path / "venv")}
    failed = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert failed.returncode == 1
    assert f"owf is neither in {tmp_path}/venv/bin nor on the PATH: run `pip install" in failed.stderr


PARSE = """set -euo pipefail
. "$(dirname "$0")/../recipe.sh"
parse "$1" "$2" "${@:3}"
printf '%s\\n' "$OUTPUT" "$LIMIT" "${CONFIGS[*]-}" "${REST[*]-}"
"""


def parse(folder, *words):
    script = FOLDER / "multi30k/some.sh"
    return subprocess.run(["bash", "-c", PARSE, script, *words], capture_output=True, text=True, cwd=folder)


def test_words_of_a_command_line_go_where_they_belong(tmp_path):
    done = parse(
        tmp_path, "CONFIG --limit=", "owf train", "a", "--output=out", "b", "--lr", "1", "c", "--limit", "3", "-x"
    )
    assert done.stdout.splitlines() == [f"{tmp_path}/out", "3", "a b", "--lr 1 c -x"], done.stderr
    done = parse(tmp_path, "CONFIG", "owf train", "a", "--limit", "3")  # not a flag of this script
    assert done.stdout.splitlines() == [f"{FOLDER.parent}/runs/multi30k", "", "a", "--limit 3"]
    for words, problem in (
        (["CONFIG", "owf train"], "name at least one CONFIG"),
        (["--limit=", "", "--limit"], "--limit needs a value"),
        (["--limit=", "", "word"], "unknown argument word"),
    ):
        refused = parse(tmp_path, *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert problem in refused.stderr


def test_a_step_is_done_again_when_its_settings_or_its_input_changed(tmp_path):
    lines = f". '{FOLDER}/recipe.sh'\nSTEPS=steps\n: >>input\n"
    script = "step_on \"$1\" input name bash -c 'echo again >>output'"

    def times(settings):
        subprocess.run(["bash", "-c", lines + script, "run", settings], cwd=tmp_path, check=True, capture_output=True)
        return len((tmp_path / "output").read_text().splitlines())

    assert [times("a"), times("a"), times("b"), times("b")] == [1, 1, 2, 2]
    (tmp_path / "input").write_text("changed")
    assert [times("b"), times("b")] == [3, 3]


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
