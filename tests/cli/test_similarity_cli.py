"""`owf similarity` on real checkpoints: files, numbers, what is left out, what is refused."""

import contextlib
import importlib.util
import io
import json
import shutil
from dataclasses import replace

import pytest
import torch
from fairseq_for_tests import COPIER, text_sentences, train_on_text

from owf_fairseq import cli
from owf_fairseq.analysis import models as analysed_models
from owf_fairseq.analysis.cka import cka
from owf_fairseq.analysis.lns import lns
from owf_fairseq.analysis.neighbors import nearest
from owf_fairseq.analysis.preparation import doubts, prepare
from owf_fairseq.analysis.representations import STACKS, represent
from owf_fairseq.analysis.settings import Settings
from owf_fairseq.checkpoint import read_checkpoint
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.decoding.forced import numbers

SENTENCES = [*dict.fromkeys(text_sentences(60, seed=7))][:40]
REFERENCES = [*dict.fromkeys(text_sentences(60, seed=8))][:40]
"""Other sentences: no model can take one for the other."""
HAS_PLOTS = importlib.util.find_spec("matplotlib") is not None
PLOTS = [] if HAS_PLOTS else ["--no-plots"]


def similarity(*arguments):
    """Status, and what was printed and said."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["similarity", *map(str, arguments)])
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def models(copier, tmp_path_factory):
    """A trained model beside its data, and others that differ from it by a little and by more noise."""
    folder = tmp_path_factory.mktemp("similarity")
    shutil.copytree(copier.parent.parent / "data", folder / "data")
    found = {}
    for name, noise in (("model", 0.0), ("near", 0.02), ("nearer", 0.01), ("far", 0.06)):
        state = read_checkpoint(copier)
        state["cfg"]["common"]["seed"] = {"model": 1, "near": 2, "nearer": 3, "far": 4}[name]
        generator = torch.Generator().manual_seed(5)
        for tensor in state["model"].values():
            if tensor.is_floating_point() and tensor.dim() == 2:
                tensor += noise * torch.randn(tensor.shape, generator=generator)
        found[name] = folder / name / "checkpoint.pt"
        found[name].parent.mkdir()
        torch.save(state, found[name])
    return found


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in (("src", SENTENCES), ("ref", REFERENCES)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return ["--src", folder / "src", "--ref", folder / "ref"]


@pytest.fixture(scope="module")
def analysis(models, texts, tmp_path_factory):
    """What a whole analysis printed, and its folder."""
    folder = tmp_path_factory.mktemp("analysis") / "out"
    status, out, err = similarity(
        models["model"], f"noisy={models['far']}", "--benchmark", models["near"], models["nearer"], *texts,
        "--output", folder, "--markdown", *PLOTS,
    )  # fmt: skip
    assert status == 0, err
    return out, err, folder


def test_the_folder_has_everything(analysis):
    out, err, folder = analysis
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    others = ("noisy", "near", "nearer", "random_weights")
    pictures = {f"{model}.self.{stack}" for model in ("model", *others) for stack in STACKS}
    pictures |= {f"{model}.cross.{stack}" for model in others for stack in STACKS} | {"noisy.layers"}
    kinds = ("png", "svg") if HAS_PLOTS else ()
    assert names == {"similarity.json", "tables.md"} | {f"{name}.{kind}" for name in pictures for kind in kinds}
    tables = (folder / "tables.md").read_text()
    assert out.strip() in tables
    assert [line[3:] for line in out.splitlines() if line.startswith("## ")][:2] == [
        "Similarity to model, normalised: 100 is the benchmark's mean",
        "Similarity to model, raw",
    ]
    assert "40 sentences are not more than the 96 dimensions" in err
    assert len(err.splitlines()) == 1


def test_the_numbers_are_those_of_the_representations(analysis, models):
    data = json.loads((analysis[2] / "similarity.json").read_text())
    assert data["kind"] == "similarity"
    assert [(model["name"], model["role"]) for model in data["models"]] == [
        ("model", "baseline"), ("noisy", "compared"), ("near", "benchmark"), ("nearer", "benchmark"),
        ("random weights", "random"),
    ]  # fmt: skip
    assert data["settings"]["k"] == 2
    assert [model["seed"] for model in data["models"]] == [1, 4, 2, 3, 1000]
    assert [model["checkpoint"] for model in data["models"]][::4] == [str(models["model"]), None]
    assert data["files"]["sentences"] == 40
    found = {}
    for name in ("model", "far"):
        backend = FairseqBackend.from_checkpoint(str(models[name]), cpu=True, packed=False)
        pieces = [
            [numbers(backend.source, backend.segmentation().encode(line).split()) for line in lines]
            for lines in (SENTENCES, REFERENCES)
        ]
        found[name] = represent(backend.models[0], (backend.source, backend.target), list(zip(*pieces, strict=True)))
    for stack in STACKS:
        entry = data["models"][1]["stacks"][stack]
        labels = entry["modules"] + entry["layers"]
        assert labels == list(found["far"][stack].components)
        one, other = (list(found[name][stack].components.values()) for name in ("model", "far"))
        for i, row in enumerate(one):
            for j, column in enumerate(other):
                assert entry["cross"]["cka"][i][j] == pytest.approx(cka(row, column), abs=1e-6)
                assert entry["cross"]["lns"][i][j] == pytest.approx(lns(row, column), abs=0.03)
                assert entry["self"]["cka"][i][j] == pytest.approx(cka(other[i], column), abs=1e-6)
    raw = {row["model"]: row for row in data["tables"]["raw"]}
    for column in ("encoder_cka", "encoder_lns", "decoder_cka", "decoder_lns"):
        assert (
            1 > raw["nearer"][column] > raw["near"][column] > raw["noisy"][column] > raw["random weights"][column] > 0
        )


def test_a_model_is_wholly_like_itself(models, texts, tmp_path):
    copy = tmp_path / "copy.pt"
    shutil.copy(models["model"], copy)
    call = [models["model"], f"copy={copy}", *texts, "--data", models["model"].parent.parent / "data"]
    status, out, err = similarity(*call, "--json", tmp_path / "x.json", "--no-eos", "--capture", "module")
    assert status == 0
    assert "copy was trained with the seed of model, 1" in err
    (line,) = [line for line in out.splitlines() if "copy" in line and "1.00" in line and "whole" not in line][:1]
    assert line.count("1.00") == 4
    data = json.loads((tmp_path / "x.json").read_text())
    assert data["settings"]["capture"] == "module"
    assert data["settings"]["eos"] is False
    for stack in STACKS:
        assert data["models"][1]["stacks"][stack]["self"] == data["models"][0]["stacks"][stack]["self"]
    again = similarity(*call, "--json", tmp_path / "x.json", "--debiased")
    assert again[0] == 0  # its own JSON is replaced
    assert "dimensions" not in again[2]
    assert json.loads((tmp_path / "x.json").read_text())["settings"]["debiased"] is True


def test_every_flag_changes_what_it_should(models, texts, tmp_path, monkeypatch):
    """And nothing else: `--k` LNS, `--debiased` CKA, `--seed` the random model."""
    asked = []
    represented = analysed_models.represent

    def listen(*given, **how):
        asked.append(how["max_tokens"])
        return represented(*given, **how)

    monkeypatch.setattr(analysed_models, "represent", listen)

    def numbers_with(*flags):
        call = [models["model"], f"noisy={models['far']}", *texts, *flags, "--json", tmp_path / "x.json"]
        assert similarity(*call)[0] == 0
        return {
            (row["model"], name): value
            for row in json.loads((tmp_path / "x.json").read_text())["tables"]["raw"]
            for name, value in row.items()
            if name.endswith(("cka", "lns"))
        }

    plain = numbers_with()
    assert len(plain) == 8

    def changed(*flags):
        return {key for key, value in numbers_with(*flags).items() if value != plain[key]}

    assert changed("--max-tokens", "777") <= {key for key in plain if key[0] == "random weights"}  # rounding
    assert set(asked) == {4000, 777}
    assert changed("--k", "5") == {key for key in plain if key[1].endswith("lns")}
    assert changed("--debiased") == {key for key in plain if key[1].endswith("cka")}
    assert changed("--seed", "17") == {key for key in plain if key[0] == "random weights"}
    for flags in (["--no-eos"], ["--capture", "module"], ["--sentences", "30"]):
        assert changed(*flags) >= {key for key in plain if key[1].endswith("cka")}, flags


def test_pairs_that_cannot_be_used_are_left_out_and_said(models, tmp_path):
    lines = [*SENTENCES[:10], "", " \t", "the lamp " * 900, *SENTENCES[10:]]
    other = [*SENTENCES[:3], "", *SENTENCES[4:10], *lines[10:]]
    (tmp_path / "src").write_text("".join(f"{line}\r\n" for line in lines))
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in other))
    call = [models["model"], "--src", tmp_path / "src", "--ref", tmp_path / "ref", "--json", tmp_path / "x.json"]
    status, _, err = similarity(*call)
    assert status == 0
    assert "3 of 43 pairs are left out, blank on one side: line 4, 11, 12" in err
    assert "1 of 43 pairs are left out, longer than a model takes: line 13" in err
    assert json.loads((tmp_path / "x.json").read_text())["files"]["sentences"] == 39


def test_models_with_vocabularies_of_their_own(models, copier_with, texts):
    status, out, _ = similarity(models["model"], f"bpe={copier_with('moses-bpe')}", *texts)
    assert status == 0
    (line,) = [line for line in out.split("\n\n")[1].splitlines() if line.startswith("bpe")]
    assert all(0 < float(cell) < 1 for cell in line.split()[1:])


def test_decoder_only(texts, tmp_path):
    model = "--arch owf_decoder_only_tiny_one_wide_ffn --decoder-layers 2"
    checkpoint = train_on_text(tmp_path, model, updates=3)
    status, out, err = similarity(checkpoint, *texts, "--json", tmp_path / "x.json")
    assert status == 0, err
    stacks = json.loads((tmp_path / "x.json").read_text())["models"][0]["stacks"]
    assert stacks["encoder"]["modules"] == ["0.sa", "0.ffn"]
    assert stacks["decoder"]["modules"] == ["0.sa", "0.ffn", "1.sa", "1.ffn"]


def test_neighbors_side_by_side(models, tmp_path):
    """Lines are those of the files, also where some are left out; for the decoder, of what it reads."""
    sources, references = ([*lines[:2], "", *lines[2:]] for lines in (SENTENCES, REFERENCES))
    for name, lines in (("src", sources), ("ref", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    texts = ["--src", tmp_path / "src", "--ref", tmp_path / "ref", "--json", tmp_path / "x.json"]
    call = [models["model"], f"noisy={models['far']}", *texts, "--neighbors", "5", "--k", "4", "--overwrite"]
    for component, lines, shown in (
        ("decoder.0.ca", references, "decoder, 0.ca"),
        ("encoder.0", sources, "encoder, 0"),
    ):
        status, out, _ = similarity(*call, "--component", component)
        assert status == 0
        data = json.loads((tmp_path / "x.json").read_text())
        assert data["kind"] == "neighbors"
        assert (data["sentence"], data["component"]) == (lines[4], shown)
        assert list(data["neighbors"]) == ["model", "noisy"]
        for name, found in data["neighbors"].items():
            assert len(found) == 4, name
            assert not {3, 5} & {one["line"] for one in found}
            assert [one["sentence"] for one in found] == [lines[one["line"] - 1] for one in found]
            assert [one["distance"] for one in found] == sorted(one["distance"] for one in found)
            assert all(one["sentence"] in out for one in found)
    backend = FairseqBackend.from_checkpoint(str(models["model"]), cpu=True, packed=False)
    pieces = [numbers(backend.source, backend.segmentation().encode(line).split()) for line in SENTENCES]
    both = (backend.source, backend.target)
    layer = represent(backend.models[0], both, [(one, one) for one in pieces])["encoder"].layers["0"]
    expected = [SENTENCES[number] for number, _ in nearest(layer, 3, 4)]
    assert [one["sentence"] for one in data["neighbors"]["model"]] == expected

    status, out, _ = similarity(models["model"], *texts, "--neighbors", "1")
    assert status == 0
    assert "encoder, last layer" in out
    assert len([line for line in out.splitlines() if line.split()[:1] and line.split()[0].isdecimal()]) == 10


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
        "`--seed` must be from 0 to 4294967295, but is -1",
    ):
        assert said in err, said
    assert [path.name for path in taken.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--neighbors", "41"], "`--neighbors` 41: the text has 40 lines"),
        (["--neighbors", "0"], "`--neighbors` 0: the text has 40 lines"),
        (["--neighbors", "1", "--component", "encoder.7.sa"], "model has encoder.0.sa, encoder.0.ffn, encoder.0"),
        (["--neighbors", "1", "--component", "0.sa"], "must begin with encoder. or decoder."),
        (["--no-plots"], "`--no-plots` is of `--output`"),
        (["--seed", "9" * 30], "`--seed` must be from 0 to 4294967295"),
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
    other = train_on_text(tmp_path, f"{COPIER} --activation-fn gelu", updates=1)
    for benchmarks, said in (
        ([f"x={models['model']}"], "is the baseline itself"),
        ([f"x={near}", f"y={near}"], "is x already"),
        ([f"x={other}"], "must be the baseline with another seed, but their flags differ"),
    ):
        status, _, err = similarity(models["model"], "--benchmark", *benchmarks, *texts)
        assert status == 2
        assert said in err
        assert len(err.splitlines()) == 1


def changed_copy(models, path, change):
    """A checkpoint beside the data, with something changed."""
    state = read_checkpoint(models["model"])
    change(state)
    torch.save(state, path)
    return path


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
    assert "what encoder.0.ffn makes of some sentences is infinite or no number" in err
    assert not (tmp_path / "x.json").exists()


def test_names_that_tables_have_for_something_else(models, texts):
    status, _, err = similarity(
        models["model"], f"Random weights={models['near']}", f"benchmark={models['far']}", *texts
    )
    assert status == 2
    assert len(err.splitlines()) == 2
    assert "give" in err


def test_doubts(models, texts):
    lines = [str(path) for path in texts[1::2]]
    prepared = prepare([str(models["model"]), f"b={models['far']}"], [], *lines, Settings())
    assert ["dimensions" in text for text in doubts(prepared)] == [True]
    enough = replace(prepared, kept=list(range(97)))
    assert doubts(enough) == []
    assert doubts(replace(prepared, settings=Settings(debiased=True))) == []
    same = replace(prepared.models[1], facts={**prepared.models[1].facts, "seed": 1})
    (said,) = doubts(replace(enough, models=[prepared.models[0], same, prepared.models[2]]))
    assert "b was trained with the seed of model, 1" in said


def test_the_random_model_begins_with_no_models_weights(models, texts):
    lines = [str(path) for path in texts[1::2]]
    prepared = prepare([str(models["model"])], [], *lines, Settings())
    baseline, random = (model.load(Settings()) for model in prepared.models)
    assert prepared.models[1].seed == 1000
    for (name, one), (_, other) in zip(baseline.named_parameters(), random.named_parameters(), strict=True):
        if one.dim() == 2:
            cosine = torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), dim=0)
            assert abs(cosine) < 0.1, name


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
