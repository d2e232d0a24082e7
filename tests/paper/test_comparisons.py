"""Each row of a table is compared with the individual model of its own size."""

import json
from dataclasses import asdict

import pytest
from evaluation_for_tests import report_cells

from owf_fairseq import cli
from owf_fairseq.checkpoints.model_facts import ModelFacts
from owf_fairseq.cost_model.cost import shape_of_arch
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.paper.report import report
from owf_fairseq.paper.results import read_results
from owf_fairseq.sharing import ARCHS, SIZES, configuration_of
from owf_fairseq.speed.benchmark import compared_models
from owf_fairseq.speed.benchmark_models import Candidate
from owf_fairseq.speed.benchmark_names import Named
from owf_fairseq.speed.measurement import Measurement, SpeedSetting
from owf_fairseq.speed.options import BenchmarkOptions
from owf_fairseq.speed.report import Measured, as_data

FAMILIES = {
    "base": ("owf_base", 2048, (70, 4.0)),
    "base_one_wide_ffn": ("owf_base_one_wide_ffn", 24_576, (70, 6.0)),
    "decoder_only": ("owf_decoder_only", 4096, (202, 2.0)),
    "decoder_only_shared_dec": ("owf_decoder_only_shared_dec", 4096, (101, 3.0)),
    "deep_shallow": ("owf_deep_shallow", 4096, (236, 8.0)),
    "deep_shallow_one_wide_ffn": ("owf_deep_shallow_one_wide_ffn", 57_344, (236, 6.0)),
}
"""Three sizes of the paper's table of other architectures: arch, d_ff, parameters and tokens/s. All are made up."""


def timed(folder, words=()):
    """The JSON of a benchmark of them, in turn, with the flags that say what is compared."""
    candidates, measurements = [], []
    for name, (arch, width, (parameters, speed)) in FAMILIES.items():
        there = configuration_of(arch)
        dims = {
            stack: width if there.shares_ffn(stack) or there.has_own_ffns(stack) else None
            for stack in SIZES[ARCHS[arch][0]].stacks
        }
        facts = ModelFacts(arch, "the paper's", (), parameters, {}, dims)
        candidates.append(Candidate(Named(name, name), (), facts, (shape_of_arch("owf_tiny", 100),), 99, 99, 100))
        measurements.append(Measurement([12, 12], [12 / speed, 6 / speed], [0.1, 0.1]))  # the machine gets faster
    setting = SpeedSetting(1, SearchOptions(), [[[["a"] * 4]]] * len(FAMILIES), None)
    options = BenchmarkOptions(input="raw/test.en", sentences=1, **dict(words))
    baselines = compared_models(candidates, options)
    measured = Measured(candidates, ["float32"] * len(FAMILIES), [setting], [measurements], baselines)
    data = as_data(measured, {"machine": {"device": "CPU"}}, asdict(options))
    (folder / "speed.json").write_text(json.dumps(data))
    return data


@pytest.fixture
def translated(tmp_path):
    """Translations: within a family they are the same, and none is like another family's."""
    reference = [f"this is the sentence with the number {n} in it" for n in range(40)]
    (tmp_path / "ref").write_text("\n".join(reference) + "\n")
    for name in FAMILIES:
        family = next(one for one in ("base", "decoder_only", "deep_shallow") if name.startswith(one))
        known = {"base": 10, "decoder_only": 20, "deep_shallow": 35}[family]
        (tmp_path / name).write_text("\n".join(reference[:known] + ["this is one"] * (40 - known)) + "\n")
    return tmp_path


def scored(folder, *flags, names=()):
    files = [str(folder / name) for name in names or FAMILIES]
    words = ["--ref", str(folder / "ref"), *flags, "--samples", "100", "--json", str(folder / "scores.json")]
    assert cli.main(["evaluate", *files, *words, "--overwrite"]) == 0
    return json.loads((folder / "scores.json").read_text())["systems"]


def by_name(made):
    return {row["model"].split("(")[-1].rstrip(")"): row for row in report_cells(made)}


OWN = ["base"] * 2 + ["decoder_only"] * 2 + ["deep_shallow"] * 2
THREE = [word for name in dict.fromkeys(OWN) for word in ("--baseline", name)]


@pytest.mark.parametrize("flags", [["--by-size"], THREE])
def test_each_row_is_compared_with_its_own_family(translated, flags):
    """Identical translations differ from nothing, and an individual model is what the others are related to."""
    how = {"by_size": True} if flags == ["--by-size"] else {"baseline": tuple(dict.fromkeys(OWN))}
    recorded = [None if base == name else base for name, base in zip(FAMILIES, OWN, strict=True)]
    assert [system["baseline"] for system in scored(translated, *flags)] == recorded
    data = timed(translated, how)
    assert [model["baseline"] for model in data["models"]] == recorded
    assert [entry["ratio"]["median"] for entry in data["measurements"]] == [1, 1.5, 1, 1.5, 1, 0.75]
    made = report(read_results([translated / "scores.json", translated / "speed.json"]), "other", only_ours=True)
    found = by_name(made)
    assert list(found) == list(FAMILIES)
    assert [row["BLEU"].endswith("†") for row in found.values()] == [False] * 6
    assert [row["speed, %"] for row in found.values()] == ["+0", "+50", "+0", "+50", "+0", "-25"]
    assert [row["parameters, %"] for row in found.values()] == ["100", "100", "100", "50", "100", "100"]
    pairs = "base for base_one_wide_ffn; decoder_only for decoder_only_shared_dec; deep_shallow for deep_shallow_one"
    assert sum(pairs in note for note in made.notes) == 2  # of the daggers, and of speed and parameters
    assert any("a sample, the first 1 sentences of test.en" in note and "float32" in note for note in made.notes)


def test_a_difference_within_a_family_has_its_dagger(translated):
    (translated / "decoder_only_shared_dec").write_text("\n".join(["this is none"] * 40) + "\n")
    scored(translated, "--by-size")
    found = by_name(report(read_results([translated / "scores.json"]), "other", only_ours=True))
    assert [name for name, row in found.items() if row["BLEU"].endswith("†")] == ["decoder_only_shared_dec"]


def test_a_row_whose_individual_model_is_not_there_is_compared_with_nothing(translated):
    (translated / "deep_shallow_one_wide_ffn").write_text("\n".join(["this is none"] * 40) + "\n")
    scored(translated, "--by-size", names=["base", "base_one_wide_ffn", "deep_shallow_one_wide_ffn"])
    made = report(read_results([translated / "scores.json"]), "other", only_ours=True)
    assert not by_name(made)["deep_shallow_one_wide_ffn"]["BLEU"].endswith("†")
    own = "the individual model of its size, which is not here"
    assert f"- no †: deep_shallow_one_wide_ffn was compared with base, and not with {own}" in made.notes


def test_what_was_compared_with_another_size_is_not_shown_as_the_papers(translated):
    """Files of one baseline for all: speeds are related anew, and daggers are left out, as the notes say."""
    systems = scored(translated, "--baseline", "base")
    assert all(system["scores"]["bleu"]["significant"] for system in systems[2:])
    timed(translated)
    made = report(read_results([translated / "scores.json", translated / "speed.json"]), "other", only_ours=True)
    assert [row["BLEU"].endswith("†") for row in by_name(made).values()] == [False] * 6
    assert [row["speed, %"] for row in by_name(made).values()] == ["+0", "+50", "+0", "+50", "+0", "-25"]
    said = [note for note in made.notes if note.startswith("- no †")]
    assert said[0] == "- no †: decoder_only_shared_dec was compared with base, and not with decoder_only"
    assert len(said) == 2  # an individual model has none in the paper either
    # a table that has no row for them leaves the comparison that was asked for
    below = by_name(report(read_results([translated / "scores.json", translated / "speed.json"]), "one_wide"))
    assert (below["deep_shallow"]["speed, %"], below["deep_shallow"]["parameters, %"]) == ("+100", "337")
    assert below["deep_shallow"]["BLEU"].endswith("†")
