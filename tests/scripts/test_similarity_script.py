"""scripts/similarity.sh from text to the tables, with small models and few updates."""

import importlib.util
import json
import re

import pytest
from fairseq_for_tests import REPOSITORY
from scripts_for_tests import SHARED_DATA, Scripts

from owf_fairseq.checkpoints.checkpoint import read_checkpoint

DATA = SHARED_DATA / "multi30k"
SMALL = ["--limit", "300", "--vocab-size", "200", "--sentences", "30"]
QUICK = "--max-update 2 --max-tokens 300 --max-valid-steps 1 --jobs 2 --cpu".split()


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no Multi30k in {DATA}")
@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="`pip install '.[plot]'` for the pictures")
def test_from_the_text_to_the_tables(scripts):
    run = scripts.folder / "run"
    call = ["similarity.sh", "--dataset", "multi30k", "--rows", "small small_one_wide_ffn", "--seeds", "5 6"]
    call += ["--local", DATA, *SMALL, *QUICK, "--output", "run", "--capture", "module"]
    done = scripts.succeed(*call)
    commands = [command[0] for command in scripts.commands]
    assert commands == ["pairs"] * 3 + ["prepare"] + ["train"] * 4 + ["similarity"]
    data = json.loads((run / "similarity-module" / "similarity.json").read_text())
    assert [(model["name"], model["role"]) for model in data["models"]] == [
        ("small_seed_5", "baseline"),
        ("small_one_wide_ffn", "compared"),
        ("small", "benchmark"),
        ("small_seed_6", "benchmark"),
        ("random weights", "random"),
    ]
    assert [model["seed"] for model in data["models"]] == [5, 1, 1, 6, 1000]
    assert "was trained with the seed" not in done.stderr
    assert data["files"]["sentences"] == 30
    assert data["files"]["source"]["file"] == str(run / "raw" / "test.en")
    assert data["settings"]["capture"] == "module"
    seeds = [
        read_checkpoint(run / name / "checkpoint_best.pt", read_tensors=False)["cfg"]["common"]["seed"]
        for name in ("small", "small_seed_5", "small_seed_6")
    ]
    assert seeds == [1, 5, 6]
    raw = {row["model"]: row for row in data["tables"]["raw"]}
    assert raw["small"]["encoder_cka"] != raw["small_seed_6"]["encoder_cka"]
    assert raw["small_one_wide_ffn"]["paper_row"] == "SharedEncNoDec 49152"
    assert "Similarity to small_seed_5, normalised" in done.stdout
    assert (run / "similarity-module" / "small_one_wide_ffn.self.decoder.png").stat().st_size > 10_000

    scripts.succeed(*call)  # all trainings are done
    assert [command[0] for command in scripts.commands] == ["similarity"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the data, --dataset NAME"),
        (["--dataset", "multilingual"], "there is no row of table 'similarity' for 'multilingual'"),
        (["--dataset", "multi30k", "--seeds", "1 x"], "--seeds must be a whole number above 0, but is x"),
        (
            ["--dataset", "multi30k", "--seeds", "2 2"],
            "--seeds must differ from each other and from that of the configs, 1",
        ),
        (["--dataset", "multi30k", "--seeds", "3 1"], "--seeds must differ"),
        (["--dataset", "multi30k", "--capture", "all"], "--capture must be sublayer or module, but is all"),
        (["--dataset", "multi30k", "--jobs", "0"], "--jobs must be a whole number above 0, but is 0"),
    ],
)
def test_wrong_words(scripts, arguments, said):
    done = scripts.run("similarity.sh", *arguments, "--output", "run")
    assert done.returncode == 2
    assert said in done.stderr
    assert not (scripts.folder / "run").exists()


def test_the_script_that_measures_memory(capsys):
    path = REPOSITORY / "scripts" / "measure" / "similarity_memory.py"
    spec = importlib.util.spec_from_file_location("similarity_memory", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.main(["--sentences", "300", "--dimensions", "8"]) == 0
    said = capsys.readouterr().out
    shown = re.fullmatch(r"LNS of 300 sentences, 8 dimensions, k = 15: 1 of 1 blocks, peak ([\d.]+) GB, .*\n", said)
    assert 0 < float(shown[1]) < 64  # of the process, which may have run other tests
    with pytest.raises(SystemExit) as stopped:
        script.main(["--sentences", "1"])
    assert stopped.value.code == 2
