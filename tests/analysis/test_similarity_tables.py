"""Scores, redundancy and the paper's tables, from matrices whose numbers are known."""

import json

import numpy as np
import pytest
import torch

from owf_fairseq.analysis.cka import cka
from owf_fairseq.analysis.lns import lns
from owf_fairseq.analysis.output import as_json
from owf_fairseq.analysis.representations import Stack
from owf_fairseq.analysis.similarity import Distinct, compare_models, corresponding, redundancy, summary_score
from owf_fairseq.analysis.tables import COLUMNS, HEADINGS, similarity_tables, with_headings
from owf_fairseq.paper.rows import SIMILARITY_SLIPS, similarity_rows

MODULES, LAYERS = ["0.sa", "0.ffn", "1.sa", "1.ffn"], ["0", "1"]


def stack(modules, layers, diagonal, cka=0.5):
    """As `compare_models` makes it, with a baseline of two layers, and these similarities of corresponding ones."""
    labels = {"modules": modules, "layers": layers}
    names = {"modules": MODULES, "layers": LAYERS}
    columns = modules + layers
    cross = [[0.01 * (row + 1) for _ in columns] for row in range(6)]
    for row, label in enumerate(MODULES + LAYERS):
        if label in columns:
            cross[row][columns.index(label)] = diagonal[row]
    scores = {of: {m: corresponding(cross, names, labels, of) for m in ("cka", "lns")} for of in labels}
    return {**labels, "baseline": names, "dimension": 8, "cross": {"cka": cross}, "scores": scores,
            "redundancy": {"adjacent": cka, "second": 0.75, "difference": cka - 0.75}}  # fmt: skip


def facts(name, role, arch, ffn_dims, **stacks):
    return {
        "name": name,
        "role": role,
        "arch": arch,
        "parameters": 1,
        "ffn_dims": ffn_dims,
        "configuration": "as named",
        "stacks": stacks,
    }


def analysis():
    whole = [0.8, 0.9, 0.7, 0.8, 0.9, 0.8]
    same = {"encoder": stack(MODULES, LAYERS, whole), "decoder": stack(MODULES, LAYERS, whole)}
    half = {"encoder": stack(MODULES, LAYERS, [x / 2 for x in whole]), "decoder": same["decoder"]}
    dropped = {"encoder": same["encoder"], "decoder": stack(["0.sa", "1.sa"], LAYERS, [0.1, 0, 0.1, 0, 0.2, 0.4])}
    deeper = {"encoder": same["encoder"], "decoder": stack(MODULES, [*LAYERS, "2"], whole)}
    widths = {"encoder": 256, "decoder": 256}
    models = [
        facts("small", "baseline", "owf_small", widths, **same),
        facts("no dec", "compared", "owf_small_no_dec", {"encoder": 256, "decoder": None}, **dropped),
        facts("wide", "compared", "owf_small_one_wide_ffn", {"encoder": 1024, "decoder": None}, **dropped),
        facts("half", "compared", "owf_small_shared_enc_no_dec", {"encoder": 512, "decoder": None}, **half),
        facts("deeper", "compared", "owf_small", widths, **deeper),
        facts("seed 2", "benchmark", "owf_small", widths, **same),
        facts("seed 3", "benchmark", "owf_small", widths, **half),
        facts("random weights", "random", "owf_small", widths, **half),
    ]
    settings = {"capture": "sublayer", "eos": True, "k": 5, "debiased": False}
    return {"kind": "similarity", "models": models, "files": {"sentences": 100}, "settings": settings}


DATA = analysis()
TABLES = similarity_tables(DATA)


def row(table, name):
    (found,) = [one for one in TABLES[table].data if one["model"] == name]
    return found


def test_a_score_is_the_mean_over_corresponding_components():
    assert row("raw", "seed 2")["encoder_cka"] == pytest.approx((0.8 + 0.9 + 0.7 + 0.8) / 4)
    assert row("raw", "half")["encoder_cka"] == pytest.approx((0.8 + 0.9 + 0.7 + 0.8) / 8)
    assert row("layers", "seed 2")["encoder_cka"] == pytest.approx(0.85)


def test_where_components_differ_whole_layers_are_compared():
    for name in ("no dec", "wide"):
        found = row("raw", name)
        assert found["decoder_cka"] == found["decoder_lns"] == pytest.approx(0.3)
        assert found["whole_layers"] == ["decoder"]
    assert row("raw", "half")["whole_layers"] == []
    lines = TABLES["raw"].as_markdown().splitlines()
    assert [line.count("‡") for line in lines if "wide" in line or "half" in line] == [2, 0]
    assert any("whole layers" in line for line in lines)
    assert "benchmark's whole layers" in TABLES["normalised"].as_text()


def test_with_other_numbers_of_layers_nothing_is_compared():
    assert row("raw", "deeper")["decoder_cka"] == pytest.approx(0.8)  # its modules are the same here
    assert row("layers", "deeper")["decoder_cka"] is None
    assert summary_score(stack(["0.sa"], ["0"], [0] * 6), "cka") is None
    assert corresponding([[]], {"modules": [], "layers": []}, {"modules": [], "layers": []}, "modules") is None


def test_normalised_by_the_mean_of_the_benchmarks():
    mean = (0.8 + 0.4) / 2
    assert row("normalised", "half")["encoder_cka"] == pytest.approx(100 * 0.4 / mean)
    # of whole layers, relative to the benchmarks' whole layers
    assert row("normalised", "no dec")["decoder_lns"] == pytest.approx(100 * 0.3 / 0.85)
    assert row("normalised", "wide")["decoder_cka"] == pytest.approx(100 * 0.3 / 0.85)
    assert row("normalised", "random weights")["encoder_cka"] == pytest.approx(100 * 0.4 / mean)
    first = TABLES["normalised"].data[0]
    assert [first[f"{stack}_{metric}"] for stack, metric in COLUMNS] == [100] * 4
    assert "seed 2" in first["model"]
    assert "seed 3" in first["model"]
    assert not any(one["model"] == "seed 2" for one in TABLES["normalised"].data)


def test_without_benchmarks_there_is_no_normalised_table():
    few = {**DATA, "models": [model for model in DATA["models"] if model["role"] != "benchmark"]}
    made = similarity_tables(few)
    assert list(made) == ["raw", "layers", "redundancy"]
    assert "--benchmark" in made["raw"].as_text()


def test_the_papers_row_stands_beside_the_model_of_its_configuration_and_width():
    found = {one["model"]: one["paper_row"] for one in TABLES["raw"].data}
    assert found == {
        "seed 2": "Transformer Big seed 2",
        "seed 3": "Transformer Big seed 3",
        "no dec": "NoDec",
        "wide": "SharedEncNoDec 49152",
        "half": None,  # a width that the paper's table has not
        "deeper": None,
        "random weights": None,
    }
    assert row("normalised", "wide")["paper"]["decoder_lns"] == 82.9
    line = next(line for line in TABLES["normalised"].as_markdown().splitlines() if "wide" in line)
    assert [cell.strip() for cell in line.split("|")[3:10:2]] == ["97.0", "83.2", "94.0", "82.9"]


def test_the_papers_numbers_stand_beside_no_other_baseline():
    """In the paper all are compared with the individual encoder-decoder model."""
    for arch, widths in (("owf_decoder_only", {"encoder": None, "decoder": 4096}), ("owf_small_no_dec", {})):
        base = {**DATA["models"][0], "arch": arch, "ffn_dims": widths or {"encoder": 256, "decoder": None}}
        made = similarity_tables({**DATA, "models": [base, *DATA["models"][1:]]})
        assert {one["paper_row"] for one in made["raw"].data} == {None}
        assert "paper" not in made["raw"].header


def test_headings_and_json():
    assert set(TABLES) == set(HEADINGS)
    headings = [heading for heading, _ in with_headings(DATA, TABLES)]
    assert headings[1] == "Similarity to small, raw"
    data = json.loads(as_json(DATA, TABLES))
    assert set(data["tables"]) == set(HEADINGS)
    assert data["tables"]["redundancy"][0] == {
        "model": "small",
        "role": "baseline",
        "encoder": {"adjacent": 0.5, "second": 0.75, "difference": -0.25},
        "decoder": {"adjacent": 0.5, "second": 0.75, "difference": -0.25},
    }


def test_redundancy():
    smooth = [[1 - 0.1 * abs(i - j) for j in range(6)] for i in range(6)]
    checkerboard = [[1.0 if (i - j) % 2 == 0 else 0.4 for j in range(6)] for i in range(6)]
    assert redundancy(smooth, 6) == pytest.approx({"adjacent": 0.9, "second": 0.8, "difference": 0.1})
    assert redundancy(checkerboard, 4) == pytest.approx({"adjacent": 0.4, "second": 1.0, "difference": -0.6})
    assert redundancy(smooth, 2) is None


def test_a_model_is_compared_with_the_baseline_and_with_itself():
    generator = torch.Generator().manual_seed(1)

    def features(dimensions):
        return torch.randn(30, dimensions, generator=generator)

    ffn = features(4)
    base = {
        "encoder": Stack({"0.sa": features(4), "0.ffn": ffn}, {"0": ffn.clone()}),
        "decoder": Stack({"0.sa": features(4)}, {"0": features(4)}),
    }
    last = features(6)
    other = {"encoder": Stack({"0.sa": last}, {"0": last}), "decoder": Stack()}
    found = compare_models(base, other, k=3)
    encoder = found["encoder"]
    assert encoder["modules"] == ["0.sa"]
    assert encoder["baseline"] == {"modules": ["0.sa", "0.ffn"], "layers": ["0"]}
    for metric, measure in (("cka", cka), ("lns", lambda one, two: lns(one, two, 3))):
        expected = [
            [measure(one, two) for two in other["encoder"].components.values()]
            for one in base["encoder"].components.values()
        ]
        assert np.allclose(encoder["cross"][metric], expected, atol=1e-12)
        assert encoder["scores"]["modules"][metric] is None
        assert encoder["scores"]["layers"][metric] == [pytest.approx(expected[2][1])]
    assert np.allclose(encoder["self"]["cka"], 1)
    assert found["decoder"]["cross"] == {"cka": [[], []], "lns": [[], []]}
    assert found["decoder"]["scores"]["layers"] == {"cka": None, "lns": None}

    debiased = compare_models(base, other, k=3, debiased=True)["encoder"]
    assert debiased["cross"]["lns"] == encoder["cross"]["lns"]
    first, two = (next(iter(stacks["encoder"].modules.values())) for stacks in (base, other))
    assert debiased["cross"]["cka"][0][0] == pytest.approx(cka(first, two, debiased=True))

    itself = compare_models(base, base, k=3)["encoder"]
    assert itself["scores"]["modules"] == {"cka": [pytest.approx(1)] * 2, "lns": [1.0, 1.0]}
    assert itself["cross"]["cka"] == itself["self"]["cka"]


def test_what_is_there_twice_is_computed_once():
    one, two = torch.ones(5, 2), torch.zeros(5, 2)
    distinct = Distinct([one, two, one.clone(), two])
    assert (len(distinct), distinct.places, distinct.sentences) == (2, [0, 1, 0, 1], 5)
    assert (len(Distinct([])), Distinct([]).sentences) == (0, 0)


def test_the_papers_own_tables_agree_with_each_other_but_for_its_slips():
    """Normalised is 100 x raw / the mean of the two seeds, one mean for all rows, as far as rounding leaves it open."""
    rows = similarity_rows()
    raw = {one.row: one.values for one in rows if one.table == "raw"}
    normalised = {one.row: one.values for one in rows if one.table == "normalised" and one.row != "Benchmark"}
    assert len(rows) == 19
    assert set(raw) == {*normalised, "Transformer Big seed 2", "Transformer Big seed 3"}
    slips = set()
    for stack_name, metric in COLUMNS:
        column = f"{stack_name}_{metric}"
        mean = sum(raw[f"Transformer Big seed {seed}"][column] for seed in (2, 3)) / 2
        for name, values in normalised.items():
            least, most = (100 * (raw[name][column] + s) / (mean - s) + 10 * s for s in (-0.005, 0.005))
            if not least <= values[column] <= most:
                slips.add((name, column))
    assert slips == SIMILARITY_SLIPS


def test_a_slip_is_said_where_its_row_is_shown():
    assert "follow" not in TABLES["normalised"].as_text()
    shared = facts("shared", "compared", "owf_small_shared_enc", {"encoder": 256, "decoder": 256},
                   **DATA["models"][0]["stacks"])  # fmt: skip
    made = similarity_tables({**DATA, "models": [*DATA["models"], shared]})
    assert "encoder LNS of SharedEnc does not follow" in made["normalised"].as_markdown()
    assert "follow" not in made["raw"].as_markdown()
