"""Our results in the paper's tables: the right row, the paper's numbers beside ours, from the commands' own JSON."""

import json

import pytest
from evaluation_for_tests import report_cells

from owf_fairseq import cli
from owf_fairseq.errors import InputError
from owf_fairseq.model_names import arch_of_name
from owf_fairseq.paper import rows as paper
from owf_fairseq.paper.report import report, tables_of_the_paper
from owf_fairseq.paper.results import Ours, Results, read_results
from owf_fairseq.sharing import SIZES


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


def test_ours_stand_beside_the_papers(measured, capsys, tmp_path):
    scores, speed = measured
    output, as_json = tmp_path / "table.md", tmp_path / "table.json"
    capsys.readouterr()
    assert cli.main(["report", str(scores), str(speed), "--output", str(output), "--json", str(as_json)]) == 0
    assert capsys.readouterr().out == output.read_text()
    data = {one["name"]: one["scores"] for one in json.loads(scores.read_text())["systems"]}
    speeds = json.loads(speed.read_text())["measurements"]
    base, *_, wide, _ = table = report_cells(report(read_results(measured), "one_wide"))
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
    assert report_cells(report(results, "one_wide"))[-1]["model"] == "mine"
    assert report_cells(report(results, "one_wide"))[-1]["BLEU"] == "12.3"


@pytest.mark.parametrize("size", sorted(name for name, size in SIZES.items() if size.encoder_layers))
def test_one_wide_ffn_is_the_papers_row_at_every_size(size):
    name = f"owf_{size}_one_wide_ffn"
    made = report(Results({name: Ours(name, name)}), "one_wide")
    assert [row[0] for row in made.rows if name in row[0]] == [f"SharedEncNoDec 49152 ({name})"]


def test_the_two_kinds_of_model_have_rows_and_baselines_of_their_own():
    names = ["owf_decoder_only", "owf_big", "owf_decoder_only_shared_dec", "owf_big_no_dec"]
    models = {name: Ours(name, name, parameters=100 - 10 * n) for n, name in enumerate(names)}
    made = report_cells(report(Results(models), "dropping"))
    assert made[0]["model"] == "Transformer Big (owf_big)"
    assert [row["model"] for row in made[-2:]] == ["owf_decoder_only", "owf_decoder_only_shared_dec"]
    percents = {row["model"].split("(")[-1].rstrip(")"): row["parameters, %"] for row in made}
    assert [percents[name] for name in names] == ["100", "100", "80", "78"]


def test_only_ours_leaves_out_what_was_not_measured(measured):
    made = report(read_results(measured), "one_wide", only_ours=True)
    assert [row["model"] for row in report_cells(made)] == [
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
            for one in report_cells(
                report(Results({name: Ours(name, f"owf_{name}", scores=scores)}), "other", pair=pair)
            )
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
    assert [row["tokens/s"] for row in report_cells(first) if "(" in row["model"]] == ["7.0", "-"]
    assert any("source/target 9/9" in note for note in first.notes)
    named = read_results([tmp_path / "speed.json"], "4/5")
    assert [row["tokens/s"] for row in report_cells(report(named, "one_wide"))] == [
        row["tokens/s"] for row in report_cells(report(read_results([measured[1]]), "one_wide"))
    ]
    with pytest.raises(InputError, match="`--lengths` 1/1: no benchmark"):
        read_results([measured[1]], "1/1")


def test_a_model_that_is_none_of_the_papers_has_no_row(measured, tmp_path):
    data = json.loads(measured[1].read_text())
    data["models"][0]["configuration"] = None
    (tmp_path / "speed.json").write_text(json.dumps(data))
    made = report_cells(report(read_results([tmp_path / "speed.json"]), "one_wide"))
    assert made[0]["model"] == "Transformer Big"
    assert made[-1]["model"] == "owf_tiny"


def test_a_model_whose_own_ffns_are_wider_has_no_row(measured, tmp_path):
    data = json.loads(measured[1].read_text())
    data["models"][0]["ffn_dims"] = {"encoder": 1536, "decoder": 128}
    (tmp_path / "speed.json").write_text(json.dumps(data))
    assert report_cells(report(read_results([tmp_path / "speed.json"]), "one_wide"))[-1]["model"] == "owf_tiny"


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
