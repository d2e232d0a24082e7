"""Our results in the paper's tables: the right row, the paper's numbers beside ours, from the commands' own JSON."""

import json
from dataclasses import asdict

import pytest

from owf_fairseq import cli
from owf_fairseq.checkpoints.model_facts import ModelFacts
from owf_fairseq.cost_model.cost import shape_of_arch
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.errors import InputError
from owf_fairseq.model_names import arch_of_name
from owf_fairseq.paper import rows as paper
from owf_fairseq.paper.report import report, tables_of_the_paper
from owf_fairseq.paper.results import Ours, Results, read_results
from owf_fairseq.sharing import ARCHS, SIZES, configuration_of
from owf_fairseq.speed.benchmark import BenchmarkOptions, compared_models
from owf_fairseq.speed.benchmark_models import Candidate
from owf_fairseq.speed.benchmark_names import Named
from owf_fairseq.speed.measurement import Measurement, SpeedSetting
from owf_fairseq.speed.report import Measured, as_data
from owf_fairseq.tables import Report


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The JSON of both commands for two small models, whose translations are made up."""
    folder = tmp_path_factory.mktemp("measured")
    reference = [f"this is the sentence with the number {n} in it" for n in range(40)]
    (folder / "ref").write_text("\n".join(reference) + "\n")
    (folder / "owf_tiny").write_text("\n".join(line.replace("number", "figure") for line in reference) + "\n")
    (folder / "owf_tiny_one_wide_ffn").write_text("\n".join(reference[:30] + ["this is one"] * 10) + "\n")
    names = ["owf_tiny", "owf_tiny_one_wide_ffn"]
    scores, speed = folder / "scores.json", folder / "speed.json"
    files = [str(folder / name) for name in names]
    flags = ["--ref", str(folder / "ref"), "--baseline", "owf_tiny", "--samples", "100", "--json", str(scores)]
    assert cli.main(["evaluate", *files, *flags]) == 0
    flags = ["--lengths", "4/5", "--sentences", "2", "--runs", "2", "--batch-sizes", "1,2", "--vocab-size", "100"]
    assert cli.main(["benchmark", *names, *flags, "--cpu", "--json", str(speed)]) == 0
    return scores, speed


def cells(made: Report) -> list[dict[str, str]]:
    """The rows by column; the paper's column has the name of the one before it, with a P."""
    header = list(made.header)
    names = [f"{header[n - 1]} P" if name == "paper" else name for n, name in enumerate(header)]
    return [dict(zip(names, row, strict=True)) for row in made.rows]


def test_ours_stand_beside_the_papers(measured, capsys, tmp_path):
    scores, speed = measured
    output, as_json = tmp_path / "table.md", tmp_path / "table.json"
    capsys.readouterr()
    assert cli.main(["report", str(scores), str(speed), "--output", str(output), "--json", str(as_json)]) == 0
    assert capsys.readouterr().out == output.read_text()
    data = {one["name"]: one["scores"] for one in json.loads(scores.read_text())["systems"]}
    speeds = json.loads(speed.read_text())["measurements"]
    base, *_, wide, _ = table = cells(report(read_results(measured), "one_wide"))
    assert [row["model"] for row in table] == [
        "Transformer Big (owf_tiny)",
        "SharedEncNoDec 4096",
        "SharedEncNoDec 24576",
        "SharedEncNoDec 49152 (owf_tiny_one_wide_ffn)",
        "SharedEncNoDec 98304",
    ]
    assert (base["BLEU P"], wide["BLEU P"], wide["chrF P"], wide["COMET P"]) == ("35.6", "36.5 †", "63.2 †", "59.6")
    assert (wide["speed, % P"], wide["parameters P"], wide["parameters, % P"]) == ("+24", "228 M", "100")
    for row, name in ((base, "owf_tiny"), (wide, "owf_tiny_one_wide_ffn")):
        for metric, column in (("bleu", "BLEU"), ("chrf", "chrF")):
            mark = " †" if data[name][metric]["significant"] else ""
            assert row[column] == f"{data[name][metric]['score']:.1f}{mark}"
        one = next(entry for entry in speeds if entry["name"] == name and entry["batch_size"] == 1)
        assert row["tokens/s"].startswith(f"{one['tokens_per_s']['mean']:,.1f} ± ")
    assert wide["BLEU"].endswith("†")
    assert base["COMET"] == wide["COMET"] == "-"
    assert wide["parameters, %"] == "100"
    assert table[1]["BLEU"] == "-"
    assert [row["ours"] and row["ours"]["name"] for row in json.loads(as_json.read_text())["rows"]] == [
        "owf_tiny", None, None, "owf_tiny_one_wide_ffn", None
    ]  # fmt: skip


def test_the_table_of_batch_sizes(measured):
    _, speed = measured
    entries = {
        (e["name"], e["batch_size"]): e["ratio"]["median"] for e in json.loads(speed.read_text())["measurements"]
    }
    made = report(read_results([speed]), paper.BATCH_SIZES_TABLE)
    assert list(made.header) == ["batch", "owf_tiny", "paper", "owf_tiny_one_wide_ffn", "paper", "speed-up, %", "paper"]
    assert [row[0] for row in made.rows] == [str(2**n) for n in range(10)]
    ratio = entries["owf_tiny_one_wide_ffn", 2]
    assert made.rows[1][5:] == [f"{100 * (ratio - 1):+.0f}", "+18"]
    assert made.rows[9] == ["512", "-", "2,512.0 ± 50.1", "-", "1,957.9 ± 32.6", "-", "-22"]


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
    return {row["model"].split("(")[-1].rstrip(")"): row for row in cells(made)}


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


@pytest.mark.parametrize("table", tables_of_the_paper())
def test_every_table_has_the_papers_rows_and_every_arch_its_own(table):
    if table == paper.BATCH_SIZES_TABLE:
        return
    of_paper = [row for row in paper.rows() if row.table == table]
    models = {}
    for row in of_paper:
        if row.pair == "en-de":
            name = f"{row.size}_{row.configuration}" + (f"_{row.shared_ffn_dim}" if row.shared_ffn_dim else "")
            models[name.removesuffix("_individual")] = row
    results = Results({name: Ours(name, *arch_of_name(name)) for name in models})
    made = report(results, table)
    several = len({(row.size, row.pair) for row in of_paper}) > 1

    def label(row):
        ours = [f" ({name})" for name, one in models.items() if one is row]
        return row.row + (f", {row.size} {row.pair}" if several else "") + "".join(ours)

    assert [row[0] for row in made.rows] == [label(row) for row in of_paper]
    for row in of_paper:
        if row.slip:
            assert any(str(row.slip) in note for note in made.notes)


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("owf_big", ("owf_big", None)),
        ("big_one_wide_ffn", ("owf_big_one_wide_ffn", None)),
        ("owf_big_shared_enc_no_dec_24576", ("owf_big_shared_enc_no_dec", 24576)),
        ("base_cycle_2", ("owf_base_cycle_2", None)),
        ("base_cycle_2_2048", ("owf_base_cycle_2", 2048)),
        ("base_one_wide_ffn_seed_2", ("owf_base_one_wide_ffn", None)),
        ("my_model", (None, None)),
        ("", (None, None)),
    ],
)
def test_names_say_the_arch(name, arch):
    assert arch_of_name(name) == arch


def test_models_that_are_not_in_the_table_stand_below(measured):
    results = read_results(measured)
    results.models["mine"] = Ours("mine", scores={"bleu": {"score": 12.34, "significant": False}})
    assert cells(report(results, "one_wide"))[-1]["model"] == "mine"
    assert cells(report(results, "one_wide"))[-1]["BLEU"] == "12.3"


@pytest.mark.parametrize("size", sorted(name for name, size in SIZES.items() if size.encoder_layers))
def test_one_wide_ffn_is_the_papers_row_at_every_size(size):
    name = f"owf_{size}_one_wide_ffn"
    made = report(Results({name: Ours(name, name)}), "one_wide")
    assert [row[0] for row in made.rows if name in row[0]] == [f"SharedEncNoDec 49152 ({name})"]


def test_the_two_kinds_of_model_have_rows_and_baselines_of_their_own():
    names = ["owf_decoder_only", "owf_big", "owf_decoder_only_shared_dec", "owf_big_no_dec"]
    models = {name: Ours(name, name, parameters=100 - 10 * n) for n, name in enumerate(names)}
    made = cells(report(Results(models), "dropping"))
    assert made[0]["model"] == "Transformer Big (owf_big)"
    assert [row["model"] for row in made[-2:]] == ["owf_decoder_only", "owf_decoder_only_shared_dec"]
    percents = {row["model"].split("(")[-1].rstrip(")"): row["parameters, %"] for row in made}
    assert [percents[name] for name in names] == ["100", "100", "80", "78"]


def test_only_ours_leaves_out_what_was_not_measured(measured):
    made = report(read_results(measured), "one_wide", only_ours=True)
    assert [row["model"] for row in cells(made)] == [
        "Transformer Big (owf_tiny)",
        "SharedEncNoDec 49152 (owf_tiny_one_wide_ffn)",
    ]
    assert "COMET" not in made.header
    assert {"BLEU", "chrF", "tokens/s", "speed, %", "parameters"} < set(made.header)
    assert not any("exact" in note for note in made.notes)


@pytest.mark.parametrize(("size", "vocabulary", "warned"), [("big", 32_000, 1), ("big", 50_408, 0), ("tiny", 99, 0)])
def test_counts_with_another_vocabulary_than_the_papers_are_said_to_be(measured, size, vocabulary, warned):
    """What the benchmark's JSON says of its vocabulary; at another size nothing is comparable anyway."""
    (facts, _) = json.loads(measured[1].read_text())["models"]
    model = Ours(size, f"owf_{size}")
    model.learn({**facts, "arch": f"owf_{size}", "configuration": None, "vocab_size": vocabulary})
    notes = report(Results({size: model}), "sharing").notes
    found = [note for note in notes if f"vocabulary of {vocabulary:,}, and the paper's counts need 50,408" in note]
    assert len(found) == warned
    assert facts["vocab_size"] == 100


def test_results_stand_with_the_data_that_they_are_of():
    scores = {"bleu": {"score": 20.0, "significant": False}, "spbleu": {"score": 25.0, "significant": True}}
    for pair, name, row in (
        ("en-ro", "base", "Transformer Base, base en-ro"),
        ("multi", "big", "Multilingual, big multi"),
    ):
        (ours,) = (
            one
            for one in cells(report(Results({name: Ours(name, f"owf_{name}", scores=scores)}), "other", pair=pair))
            if f"({name})" in one["model"]
        )
        assert row in ours["model"]
        assert (ours["BLEU"], ours["spBLEU"]) == ("20.0", "25.0 †")
        assert (ours["BLEU P"], ours["spBLEU P"]) == (("22.9", "-") if pair == "en-ro" else ("-", "26.8"))


def test_lengths_are_one_for_all_models_and_said(measured, tmp_path):
    data = json.loads(measured[1].read_text())
    other = [{**entry, "lengths": "9/9", "tokens_per_s": None, "ratio": None} for entry in data["measurements"]]
    other[0] |= {"tokens_per_s": {"mean": 7.0, "sd": None, "by_run": [7.0]}, "ratio": None}
    (tmp_path / "speed.json").write_text(json.dumps({**data, "measurements": other + data["measurements"]}))
    first = report(read_results([tmp_path / "speed.json"]), "one_wide")
    assert [row["tokens/s"] for row in cells(first) if "(" in row["model"]] == ["7.0", "-"]
    assert any("source/target 9/9" in note for note in first.notes)
    named = read_results([tmp_path / "speed.json"], "4/5")
    assert [row["tokens/s"] for row in cells(report(named, "one_wide"))] == [
        row["tokens/s"] for row in cells(report(read_results([measured[1]]), "one_wide"))
    ]
    with pytest.raises(InputError, match="`--lengths` 1/1: no benchmark"):
        read_results([measured[1]], "1/1")


def test_a_model_that_is_none_of_the_papers_has_no_row(measured, tmp_path):
    data = json.loads(measured[1].read_text())
    data["models"][0]["configuration"] = None
    (tmp_path / "speed.json").write_text(json.dumps(data))
    made = cells(report(read_results([tmp_path / "speed.json"]), "one_wide"))
    assert made[0]["model"] == "Transformer Big"
    assert made[-1]["model"] == "owf_tiny"


def test_a_model_whose_own_ffns_are_wider_has_no_row(measured, tmp_path):
    data = json.loads(measured[1].read_text())
    data["models"][0]["ffn_dims"] = {"encoder": 1536, "decoder": 128}
    (tmp_path / "speed.json").write_text(json.dumps(data))
    assert cells(report(read_results([tmp_path / "speed.json"]), "one_wide"))[-1]["model"] == "owf_tiny"


def test_a_file_that_is_named_twice_counts_once(measured):
    once, twice = (read_results([measured[1]] * times) for times in (1, 2))
    assert len(twice.benchmarks) == len(once.benchmarks) == 1


def test_wrong_files_and_flags(measured, tmp_path, capsys):
    (tmp_path / "other.json").write_text('{"kind": "something"}')
    (tmp_path / "text").write_text("text")
    (tmp_path / "copy.json").write_bytes(measured[0].read_bytes())
    files = [str(tmp_path / name) for name in ("other.json", "text", "missing.json", "copy.json")]
    (tmp_path / "mine").write_text("mine")
    flags = ["--table", "best", "--output", str(tmp_path / "mine")]
    assert cli.main(["report", str(measured[0]), *files, *flags]) == 2
    said = capsys.readouterr().err
    for part in (
        "other.json is not JSON of",
        "text is not JSON of",
        "missing.json can't be read",
        "both hold the evaluation of 'owf_tiny'",
        "`--table` must be one of sharing, dropping, one_wide, other, custom_sharing, attention, batch_size, but is ",
        "mine exists",
    ):
        assert part in said
    assert (tmp_path / "mine").read_text() == "mine"
    with pytest.raises(InputError, match="needs a benchmark"):
        report(read_results([measured[0]]), paper.BATCH_SIZES_TABLE)
