"""`owf similarity` on real checkpoints: files, numbers, what is left out, what is refused."""

import importlib.util
import json
import shutil
from dataclasses import replace

import pytest
import torch
from fairseq_for_tests import train_on_text
from similarity_for_tests import REFERENCES, SENTENCES, similarity

from owf_fairseq.analysis import models as analysed_models
from owf_fairseq.analysis.cka import cka
from owf_fairseq.analysis.lns import lns
from owf_fairseq.analysis.neighbors import nearest
from owf_fairseq.analysis.preparation import doubts, prepare_analysis
from owf_fairseq.analysis.representations import STACKS, represent
from owf_fairseq.analysis.settings import AnalysisSettings
from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.decoding.forced import numbers

HAS_PLOTS = importlib.util.find_spec("matplotlib") is not None
PLOTS = [] if HAS_PLOTS else ["--no-plots"]


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


def test_a_folder_that_is_there_is_not_made_again(analysis, models, texts, monkeypatch):
    folder = analysis[2]
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    call = [models["model"], f"noisy={models['far']}", "--benchmark", models["near"], models["nearer"], *texts, *PLOTS]
    monkeypatch.setattr("owf_fairseq.analysis.preparation.prepare_analysis", None)  # it would be called
    assert similarity(*call, "--output", folder)[:2] == (0, "")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


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
    call = [
        models["model"],
        f"copy={copy}",
        *texts,
        "--data",
        models["model"].parent.parent / "data",
    ]
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
    again = similarity(*call, "--json", tmp_path / "x.json", "--no-eos", "--capture", "module", "--max-tokens", "500")
    assert again == (0, "", f"owf similarity: {tmp_path / 'x.json'}: made before with the same settings and inputs\n")
    again = similarity(*call, "--json", tmp_path / "x.json", "--debiased")
    assert again[0] == 2
    assert (
        "other settings (`--capture` module, now sublayer; `--no-eos` True, now False; `--debiased` False" in again[2]
    )
    again = similarity(*call, "--json", tmp_path / "x.json", "--debiased", "--overwrite")
    assert again[0] == 0
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
        call = [
            models["model"],
            f"noisy={models['far']}",
            *texts,
            *flags,
            "--json",
            tmp_path / "x.json",
            "--overwrite",
        ]
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
    call = [
        models["model"],
        "--src",
        tmp_path / "src",
        "--ref",
        tmp_path / "ref",
        "--json",
        tmp_path / "x.json",
    ]
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
    call = [
        models["model"],
        f"noisy={models['far']}",
        *texts,
        "--neighbors",
        "5",
        "--k",
        "4",
        "--overwrite",
    ]
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

    status, out, _ = similarity(models["model"], *texts, "--neighbors", "1", "--overwrite")
    assert status == 0
    assert "encoder, last layer" in out
    assert len([line for line in out.splitlines() if line.split()[:1] and line.split()[0].isdecimal()]) == 10


def test_doubts(models, texts):
    lines = [str(path) for path in texts[1::2]]
    prepared = prepare_analysis([str(models["model"]), f"b={models['far']}"], [], *lines, AnalysisSettings())
    assert ["dimensions" in text for text in doubts(prepared)] == [True]
    enough = replace(prepared, kept=list(range(97)))
    assert doubts(enough) == []
    assert doubts(replace(prepared, settings=AnalysisSettings(debiased=True))) == []
    same = replace(prepared.models[1], facts={**prepared.models[1].facts, "seed": 1})
    (said,) = doubts(replace(enough, models=[prepared.models[0], same, prepared.models[2]]))
    assert "b was trained with the seed of model, 1" in said


def test_the_random_model_begins_with_no_models_weights(models, texts):
    lines = [str(path) for path in texts[1::2]]
    prepared = prepare_analysis([str(models["model"])], [], *lines, AnalysisSettings())
    baseline, random = (model.load(AnalysisSettings()) for model in prepared.models)
    assert prepared.models[1].seed == 1000
    state = read_checkpoint(models["model"])
    state["cfg"]["common"]["seed"] = 1000
    other = models["model"].with_name("other.pt")
    torch.save(state, other)
    assert (
        prepare_analysis([str(models["model"]), f"other={other}"], [], *lines, AnalysisSettings()).models[-1].seed
        == 1001
    )
    other.unlink()
    for (name, one), (_, other) in zip(baseline.named_parameters(), random.named_parameters(), strict=True):
        if one.dim() == 2:
            cosine = torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), dim=0)
            assert abs(cosine) < 0.1, name
