"""What `owf similarity` refuses, and what it says then."""

import importlib.util

import pytest
import torch
from fairseq_for_tests import COPIER, train_on_text
from similarity_for_tests import similarity

from owf_fairseq.checkpoints.checkpoint import read_checkpoint


def test_all_problems_at_once_and_nothing_is_written(models, texts, tmp_path):
    (tmp_path / "short").write_text("one line\n")
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("x")
    status, out, err = similarity(
        models["model"], "owf_tiny", tmp_path / "nowhere.pt", f"{models['near']}:{models['far']}", tmp_path,
        "--benchmark", f"same={models['model']}", "--src", texts[1], "--ref", tmp_path / "short",
        "--output", taken, "--capture", "layers", "--k", "0", "--sentences", "1", "--max-tokens", "0",
        "--component", "encoder.0", "--seed", "-1",
    )  # fmt: skip
    assert (status, out) == (2, "")
    for said in (
        "owf_tiny is an arch",
        f"there is no checkpoint {tmp_path / 'nowhere.pt'}",
        "is an ensemble",
        f"{tmp_path} is a folder",
        f"has 40 lines, but {tmp_path / 'short'} has 1",
        "mine.txt",
        "`--capture` must be sublayer or module, but is 'layers'",
        "`--k` must be at least 1, but is 0",
        "`--sentences` must be at least 2, but is 1",
        "`--max-tokens` must be at least 1, but is 0",
        "`--component` is of `--neighbors`",
        "`--seed` must be from 0 to 2147483647, but is -1",
    ):
        assert said in err, said
    assert [path.name for path in taken.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--neighbors", "41"], "`--neighbors` 41: the text has 40 lines"),
        (["--neighbors", "0"], "`--neighbors` 0: the text has 40 lines"),
        (["--neighbors", "9", "--sentences", "8"], "`--neighbors` 9: `--sentences` 8 leaves it out"),
        (["--neighbors", "1", "--component", "encoder.7.sa"], "model has encoder.0.sa, encoder.0.ffn, encoder.0"),
        (["--neighbors", "1", "--component", "0.sa"], "must begin with encoder. or decoder."),
        (["--no-plots"], "`--no-plots` is of `--output`"),
        (["--seed", "9" * 30], "`--seed` must be a number from -2,147,483,647 to 2,147,483,647"),
        (["--k", "40"], "has 40 sentences that can be used, but `--k` 40 needs at least 41"),
        (["--sentences", "3", "--debiased"], "has 3 sentences that can be used, but `--debiased` needs at least 4"),
        (["--segmentation", "/nowhere"], "/nowhere/segmentation.json can't be read"),
        (["--data", "/nowhere"], "`--data` /nowhere must hold"),
    ],
)
def test_one_clear_sentence(models, texts, flags, said):
    status, out, err = similarity(models["model"], *texts, *flags)
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_benchmark_is_the_baseline_with_another_seed(models, texts, tmp_path):
    near = models["near"]
    same = changed_copy(models, models["model"].with_name("same.pt"), lambda state: None)
    other = train_on_text(tmp_path, f"{COPIER} --activation-fn gelu", updates=1)
    for benchmarks, said in (
        ([f"x={models['model']}"], "is the baseline itself"),
        ([f"x={near}", f"y={near}"], "is x itself"),
        ([f"x={same}"], "is of the seed of the baseline, 1"),
        ([f"x={other}"], "must be the baseline with another seed, but their flags differ"),
    ):
        status, _, err = similarity(models["model"], "--benchmark", *benchmarks, *texts)
        assert status == 2
        assert said in err


def changed_copy(models, path, change):
    """A checkpoint beside the data, with something changed."""
    state = read_checkpoint(models["model"])
    change(state)
    torch.save(state, path)
    return path


def test_the_lower_bound_is_not_the_baselines_own_beginning(models, texts):
    status, out, err = similarity(models["near"], *texts, "--seed", "2")
    assert (status, out) == (2, "")
    assert "`--seed` 2 is what the baseline began with" in err


def test_one_file_is_no_translation_of_itself(models, texts):
    status, _, err = similarity(models["model"], "--src", texts[1], "--ref", texts[1])
    assert status == 2
    assert "`--src` and `--ref` are one file" in err


def test_models_of_another_direction_or_task_are_refused(models, texts):
    def turn(state):
        task = state["cfg"]["task"]
        task["source_lang"], task["target_lang"] = "de", "en"

    def multilingual(state):
        vars(state["cfg"]["model"])["task"] = "translation_multi_simple_epoch"

    for name, change, said in (
        ("turned.pt", turn, "translates de-en, and the baseline en-de"),
        ("multi.pt", multilingual, "is of the task translation_multi_simple_epoch"),
    ):
        copy = changed_copy(models, models["model"].parent / name, change)
        status, out, err = similarity(models["model"], f"other={copy}", *texts)
        copy.unlink()
        assert (status, out) == (2, "")
        assert said in err


def test_a_model_that_makes_no_numbers_is_refused(models, texts, tmp_path):
    def diverge(state):
        state["model"]["encoder.layers.0.fc1.weight"][0, 0] = float("nan")

    copy = changed_copy(models, models["model"].parent / "nan.pt", diverge)
    status, out, err = similarity(models["model"], f"nan={copy}", *texts, "--json", tmp_path / "x.json")
    copy.unlink()
    assert (status, out) == (2, "")
    assert "nan.pt has numbers that are infinite or none (NaN) in 1 of its weights" in err
    assert not (tmp_path / "x.json").exists()


def test_names_that_tables_have_for_something_else(models, texts):
    status, _, err = similarity(
        models["model"], f"Random weights={models['near']}", f"benchmark={models['far']}", *texts
    )
    assert status == 2
    assert len(err.splitlines()) == 2
    assert "give" in err


def test_a_folder_of_its_own_is_replaced_and_inputs_are_safe(models, texts, tmp_path):
    folder = tmp_path / "out"
    for _ in range(2):
        assert similarity(models["model"], *texts, "--output", folder, "--no-plots", "--sentences", "10")[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == [".owf.json", "similarity.json", "tables.md"]
    status, _, err = similarity(models["model"], *texts, "--json", texts[1], "--overwrite")
    assert status == 2
    assert "is the input" in err
    assert len((texts[1]).read_text().splitlines()) == 40


def test_without_matplotlib_it_says_what_to_do(models, texts, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "matplotlib" else find(name, *more)
    )
    status, _, err = similarity(models["model"], *texts, "--output", tmp_path / "out")
    assert status == 2
    assert "--no-plots" in err
    assert not (tmp_path / "out").exists()
