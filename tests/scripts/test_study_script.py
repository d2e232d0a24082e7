"""scripts/study.sh and scripts/study/run.py: one run for real at a toy's size, and the sequence of all."""

import json
import random
import shutil
import sys
from pathlib import Path

import pytest
from prepare_for_tests import sentences
from scripts_for_tests import Scripts, lines_of, parse
from study_for_tests import FOLDER, REFERENCE, load_study, write_run

from owf_fairseq import cli
from owf_fairseq.files.lines import write_lines
from owf_fairseq.parameters import count_parameters

study_run = load_study("run")


# --- one run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A run's folder, raw/ and data/, with words that are translated into capitals."""
    folder = tmp_path_factory.mktemp("corpus")
    for seed, (split, count) in enumerate({"train": 200, "valid": 12, "test": 8}.items()):
        lines = sentences(seed, count)
        write_lines(folder / f"raw/{split}.en", lines)
        write_lines(folder / f"raw/{split}.de", [line.upper() for line in lines])
    words = [f"--{split}={folder}/raw/{split}" for split in ("train", "valid", "test")]
    words += ["--langs", "en-de", "--vocab-size", "90", "--output", str(folder / "data")]
    assert cli.main(["prepare", *words]) == 0
    return folder


@pytest.fixture
def words(corpus, tmp_path):
    """Of run.py, for a toy; the function adds a name and what else there is."""
    recipe = tmp_path / "recipe.yaml"
    write_lines(recipe, [f"base: {FOLDER}/_recipe.yaml", "max-tokens: 300", "lr: 0.01", "log-interval: 1"])
    common = [
        "--seed",
        "2",
        "--data",
        str(corpus),
        "--work",
        str(tmp_path / "work"),
        "--results",
        str(tmp_path / "runs"),
    ]
    return lambda name, *more: [name, *common, "--size", "tiny", "--recipe", str(recipe), *more]


def test_a_run_from_config_to_results(words, tmp_path, corpus, capfd):
    """A warm start is all that a run can be: two trainings and a conversion."""
    given = words("one_wide_ffn_warm", "--updates", "4")
    assert study_run.main(given) == 0
    place = tmp_path / "runs/one_wide_ffn_warm_seed_2"
    assert sorted(path.name for path in place.iterdir()) == ["run.json", "test.de"]
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    assert len(lines_of(place / "test.de")) == 8
    record = json.loads((place / "run.json").read_text())
    assert (record["name"], record["seed"]) == ("one_wide_ffn_warm", 2)
    # the curve begins where the first training ended, and the loss has its smoothing's part more than nll
    assert [point["updates"] for point in record["curve"]] == [3, 4]
    assert all(0 < point["nll_bits"] < point["loss"] for point in record["curve"])
    logs = [(tmp_path / f"work/one_wide_ffn_warm{part}_seed_2/train.log").read_text() for part in ("_start", "")]
    assert ["--seed 2" in log or "'seed': 2" in log for log in logs] == [True, True]
    assert "best_loss" in logs[1]
    assert record["training_s"] >= 0
    assert (record["recipe"]["lr"], "seed" in record["recipe"]) == ("0.01", False)
    assert record["model"] == {"arch": "owf_tiny_one_wide_ffn"}
    assert record["first"]["arch"] == "owf_tiny"
    norms = ["--encoder-normalize-before", "--decoder-normalize-before"]
    vocabulary = len((corpus / "data/dict.de.txt").read_text().splitlines()) + 4
    assert record["parameters"] == count_parameters("owf_tiny_one_wide_ffn", vocabulary, norms).total
    assert set(record["test"]) == set(record["valid"]) == {"bleu", "chrf"}
    assert {"torch", "owf_fairseq"} <= set(record["versions"])
    # after an interruption before its end: what is there is not done again
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*.log")}
    shutil.rmtree(place)
    assert study_run.main(given) == 0
    assert json.loads((place / "run.json").read_text()) == record
    assert {path: path.stat().st_mtime_ns for path in made} == made
    # once more: nothing is done
    before = (place / "run.json").stat().st_mtime_ns
    shutil.rmtree(tmp_path / "work")
    capfd.readouterr()
    assert study_run.main(given) == 0
    assert "its results are in" in capfd.readouterr().out
    assert (place / "run.json").stat().st_mtime_ns == before
    assert not (tmp_path / "work").exists()
    # results of other settings are neither taken nor replaced
    assert study_run.main(words("one_wide_ffn_warm", "--updates", "6")) == 2
    assert "(max-update 4, now 6): give another `--results`" in capfd.readouterr().err


# --- the script


@pytest.fixture
def scripts(tmp_path):
    found = Scripts(tmp_path)
    found.pretend_installed("plot")
    return found


def test_the_script_does_what_is_missing_in_order(scripts, tmp_path):
    """missing.py is the real one; the others only note how they are called."""
    note = scripts.folder / "venv/bin/python"
    real = f'[[ $1 != */missing.py ]] || exec "{sys.executable}" "$@"'
    note.write_text(note.read_text().replace("#!/bin/bash\n", f"#!/bin/bash\n{real}\n"))
    write_run(tmp_path / "done", "individual", 1, {}, REFERENCE)
    (scripts.run / "raw").mkdir(parents=True)
    for split in ("valid", "test"):
        for lang in ("en", "de"):
            write_lines(scripts.run / f"raw/{split}.{lang}", REFERENCE)
    where = {"RESULTS": tmp_path / "done", "TABLES": tmp_path / "out", "JOBS": "1"}
    prepare, *runs, made = scripts.commands("study.sh", "--only", "warm_start", **where)
    assert (parse(prepare).vocab_size, parse(prepare).output) == (4000, f"{scripts.run}/data")
    assert [Path(command[1]).name for command in (*runs, made)] == [*["run.py"] * 4, "tables.py"]
    assert [command[-3:] for command in runs] == [
        ["one_wide_ffn", "--seed", "1"], ["one_wide_ffn", "--seed", "2"], ["one_wide_ffn", "--seed", "3"],
        ["one_wide_ffn_warm", "--seed", "1"],
    ]  # fmt: skip
    assert runs[0][2:-3] == [
        "--data",
        f"{scripts.run}",
        "--work",
        f"{scripts.run}/models",
        "--results",
        f"{tmp_path}/done",
    ]
    assert made[2:] == [
        "--ref",
        f"{scripts.run}/raw/test.de",
        "--results",
        f"{tmp_path}/done",
        "--output",
        f"{tmp_path}/out",
    ]
    assert len(lines_of(scripts.run / "raw/test.de")) == 20


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--only"], "--only needs a value"),
        (["--fast"], "unknown argument --fast"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(scripts, words, problem):
    refused = scripts.call("study.sh", *words)
    assert (refused.returncode, problem in refused.stderr) == (2, True)
    assert not scripts.record.exists()


def test_smoke_from_text_to_tables(scripts):
    pytest.importorskip("matplotlib")
    program = "import sys\nfrom owf_fairseq.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    scripts.add("owf", f"#!{sys.executable}\n{program}")
    scripts.add("python", f'#!/bin/bash\nexec "{sys.executable}" "$@"\n')
    draw = random.Random(5)
    for split, count in {"train": 300, "valid": 30, "test": 30}.items():
        words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 7))) for _ in range(4 * count)]
        lines = [" ".join(words[n : n + 4]) for n in range(0, len(words), 4)]
        write_lines(scripts.run / f"raw/{split}.en", lines)
        write_lines(scripts.run / f"raw/{split}.de", [line.upper() for line in lines])
    done = scripts.call("study.sh", "--smoke", "--only", "attention", JOBS="2")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = sorted(path.name for path in (scripts.run / "results").iterdir())
    assert kept == [f"{name}_seed_{seed}" for name in ("attention_isi", "individual") for seed in (1, 2)]
    rows = json.loads((scripts.run / "tables/attention.json").read_text())["rows"]
    assert {row["seeds"] for row in rows} == {"2"}
    for name in ("individual_seed_2/test.de", "attention_isi_seed_1/test.one_cache.de"):
        assert len(lines_of(scripts.run / "results" / name)) == 12
    assert [row["model"].endswith("decoded with one cache") for row in rows] == [False, False, True]
