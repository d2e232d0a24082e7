"""`owf evaluate` through the command: published scores, significance, its output, and everything that it refuses."""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from importlib import metadata

import pytest
from evaluation_for_tests import WMT22, evaluate, needs_wmt22, sentences, spoil, write

from owf_fairseq import __version__

# As published in the WMT22 news systems repository: BLEU and chrF.
PUBLISHED = {
    "A": {"OpenNMT": ("35.6851", "62.1349"), "PROMT": ("36.1167", "62.8456")},
    "B": {"OpenNMT": ("35.7015", "61.4733"), "PROMT": ("36.0087", "62.1628")},
    "AB": {
        "OpenNMT": ("48.3994", "66.6827"),
        "PROMT": ("48.9722", "67.4874"),
        "Online-A": ("50.1344", "68.7591"),
    },
}


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A reference, a baseline, a clearly better system and one that hardly differs; and the source. 120 lines each."""
    monkeypatch.chdir(tmp_path)
    reference = sentences(120)
    base = spoil(reference, 0.5, seed=2)
    write(tmp_path / "ref.de", reference)
    write(tmp_path / "ref2.de", spoil(reference, 0.2, seed=3))
    write(tmp_path / "src.en", sentences(120, seed=4))
    write(tmp_path / "base.de", base)
    write(tmp_path / "better.de", spoil(reference, 0.3, seed=5))
    write(tmp_path / "same.de", [*base[:-1], reference[-1]])
    return tmp_path


def rows(printed):
    """The table by its first column."""
    lines = printed.split("\n\n")[0].splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines if line and not line.startswith("-")}


@needs_wmt22
@pytest.mark.parametrize("references", PUBLISHED)
def test_published_scores_to_four_decimals(references, capsys, monkeypatch):
    monkeypatch.chdir(WMT22)
    files = [f"ref.{reference}.de" for reference in references]
    systems = [f"{system}=hyp.{system}.de" for system in PUBLISHED[references]]
    printed, warnings = evaluate(capsys, *systems, "--ref", *files, "--src", "src.en", "--decimals", "4")
    assert rows(printed)["system"] == ["BLEU", "chrF"]
    for system, scores in PUBLISHED[references].items():
        assert tuple(rows(printed)[system]) == scores
    assert f"BLEU: nrefs:{len(files)}|case:mixed|eff:no|tok:13a|smooth:exp|" in printed
    assert f"chrF: nrefs:{len(files)}|case:mixed|eff:yes|nc:6|nw:0|space:no|" in printed
    assert warnings == ""  # real systems and references give no false alarm


@needs_wmt22
def test_bootstrap_of_real_systems_takes_seconds(capsys, monkeypatch):
    monkeypatch.chdir(WMT22)
    begun = time.monotonic()
    systems = [f"{name}=hyp.{name}.de" for name in ("OpenNMT", "PROMT", "Online-A")]
    printed, _ = evaluate(capsys, *systems, "--ref", "ref.A.de", "--baseline", "OpenNMT")
    assert time.monotonic() - begun < 60  # 4 s on an idle core
    assert rows(printed)["OpenNMT"] == ["35.7", "±", "1.0", "-", "62.1", "±", "0.7", "-"]
    assert rows(printed)["PROMT"] == ["36.1", "±", "1.0", "0.0539", "62.8", "†", "±", "0.6", "0.0010"]
    assert rows(printed)["Online-A"] == ["36.5", "†", "±", "0.9", "0.0050", "63.9", "†", "±", "0.6", "0.0010"]


def test_same_numbers_as_sacrebleus_command(texts, capsys):
    files = ["base.de", "better.de", "same.de"]
    evaluate(capsys, *files, "--ref", "ref.de", "--baseline", "base", "--json", "ours.json", "--samples", "300")
    command = [sys.executable, "-m", "sacrebleu", "ref.de", "-i", *files, "-m", "bleu", "chrf", "--quiet", "-f", "json"]
    # sacreBLEU's command reads its standard input when it is given one
    done = subprocess.run(
        [*command, "--paired-bs", "--paired-bs-n", "300"], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    theirs = json.loads(done.stdout[: done.stdout.rindex("]") + 1])
    ours = json.loads((texts / "ours.json").read_text())["systems"]
    for system, their_system in zip(ours, theirs, strict=True):
        for metric, key in (("bleu", "BLEU"), ("chrf", "chrF2")):
            found, expected = system["scores"][metric], their_system[key]
            assert found["score"] == pytest.approx(expected["score"], abs=1e-9)
            assert found["p_value"] == expected["p_value"]
            assert found["mean"] == pytest.approx(expected["mean"], abs=1e-9)
            assert found["ci95"] == pytest.approx(expected["ci"], abs=1e-9)


def test_significance(texts, capsys):
    write(texts / "copy.de", (texts / "base.de").read_text().splitlines())
    write(texts / "worse.de", spoil(sentences(120), 0.7, seed=6))
    files = ["better.de", "same.de", "copy.de", "worse.de"]
    printed, warnings = evaluate(
        capsys, *files, "--ref", "ref.de", "--baseline", "base.de", "--json", "scores.json", "--samples", "500"
    )
    table = rows(printed)
    assert list(table) == ["system", "base", "better", "same", "copy", "worse"]  # the baseline first
    daggers = {system: cells.count("†") for system, cells in table.items()}
    assert daggers == {"system": 0, "base": 0, "better": 2, "same": 0, "copy": 0, "worse": 2}
    assert "†: differs from base, p < 0.05, by paired bootstrap resampling (Koehn, 2004) of 500 samples" in printed
    assert "base.de and copy.de have the same lines" in warnings
    found = json.loads((texts / "scores.json").read_text())
    assert [system["baseline"] for system in found["systems"]] == [None, *["base"] * 4]
    assert found["significance"] == {
        "test": "paired bootstrap resampling",
        "level": 0.05,
        "samples": 500,
    }
    p_values = {system["name"]: system["scores"]["bleu"]["p_value"] for system in found["systems"]}
    assert p_values["base"] is None
    assert p_values["better"] == p_values["worse"] == 1 / 501
    assert p_values["copy"] == 1.0  # sacreBLEU says 1/501 of a system that is the baseline
    assert found["systems"][1]["scores"]["bleu"]["significant"] is True
    assert found["systems"][2]["scores"]["bleu"]["significant"] is False


def test_baseline_by_name_by_file_and_by_both(texts, capsys):
    for baseline in ("same", "same.de", "./same.de"):
        printed, _ = evaluate(
            capsys, "base.de", "same.de", "--ref", "ref.de", "--baseline", baseline, "--samples", "10"
        )
        assert list(rows(printed)) == ["system", "same", "base"]
    alone, _ = evaluate(capsys, "same.de", "--ref", "ref.de", "--baseline", "same.de", "--samples", "10")
    assert list(rows(alone)) == ["system", "same"]  # with nothing to compare there is the interval at least
    assert rows(alone)["same"] == rows(printed)["same"]
    printed, _ = evaluate(capsys, "B=better.de", "--ref", "ref.de", "--baseline", "Old=base.de", "--samples", "10")
    assert list(rows(printed)) == ["system", "Old", "B"]


def test_systems_named_by_their_folders(texts, capsys):
    for folder, file in (("owf_small", "base.de"), ("owf_big", "better.de")):
        (texts / folder).mkdir()
        (texts / folder / "test.de").write_bytes((texts / file).read_bytes())
    files = ["owf_big/test.de", "owf_small/test.de"]
    printed, _ = evaluate(capsys, *files, "--ref", "ref.de", "--baseline", "owf_small", "--samples", "10")
    assert list(rows(printed)) == ["system", "owf_small", "owf_big"]


def test_json(texts, capsys):
    arguments = ["better.de", "--ref", "ref.de", "ref2.de", "--src", "src.en", "--json", "out/scores.json"]
    first, _ = evaluate(capsys, *arguments)
    printed, said = evaluate(capsys, *arguments)  # it reads what it has made
    assert printed == first
    assert said == "owf evaluate: out/scores.json: made before with the same settings and inputs\n"
    found = json.loads((texts / "out" / "scores.json").read_text())
    assert found["kind"] == "evaluation"
    assert found["versions"]["sacrebleu"] == metadata.version("sacrebleu")
    assert found["versions"]["owf_fairseq"] == __version__
    assert found["segments"] == 120
    assert found["significance"] is None
    assert found["metrics"]["bleu"]["signature"].startswith("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    for text in (*found["references"], found["source"], found["systems"][0]):
        assert text["sha256"] == hashlib.sha256((texts / text["file"]).read_bytes()).hexdigest()
        assert text["lines"] == 120
    score = found["systems"][0]["scores"]["bleu"]["score"]
    assert rows(printed)["better"][0] == f"{score:.1f}"
    assert score != round(score, 4)
    assert sorted(os.listdir(texts / "out")) == [".scores.json.owf.json", "scores.json"]


def test_nothing_is_scored_twice_and_nothing_else_is_mistaken_for_it(texts, capsys, monkeypatch):
    arguments = ["better.de", "--ref", "ref.de", "--json", "scores.json"]
    printed, _ = evaluate(capsys, *arguments)
    with monkeypatch.context() as patched:
        patched.setattr("owf_fairseq.scoring.evaluate.score_test_sets", None)  # it would be called
        assert evaluate(capsys, *arguments)[0] == printed
        assert "| system |" in evaluate(capsys, *arguments, "--markdown")[0]
    _, errors = evaluate(capsys, *arguments, "--metrics", "chrf", status=2)
    assert "`--json` scores.json was made with other settings (`--metrics` bleu chrf, now chrf)" in errors
    _, errors = evaluate(capsys, "Other=better.de", *arguments[1:], status=2)
    assert "(`HYP` better, now Other)" in errors
    (texts / "better.de").write_bytes((texts / "base.de").read_bytes())
    assert rows(evaluate(capsys, *arguments)[0])["better"] != rows(printed)["better"]
    assert rows(evaluate(capsys, *arguments, "--metrics", "chrf", "--overwrite")[0])["system"] == ["chrF"]


def test_json_replaces_nothing_else(texts, capsys):
    before = (texts / "ref.de").read_bytes()
    printed, errors = evaluate(capsys, "better.de", "--ref", "ref.de", "--json", "ref.de", status=2)
    assert errors == "owf evaluate: error: `--json` ref.de is the input ref.de: name another file\n"
    for inputs in (["Big=ref2.de"], ["better.de", "--baseline", "ref2.de"], ["better.de", "--src", "ref2.de"]):
        flags = ["--ref", "ref.de", "--json", "./ref2.de", "--overwrite"]
        assert "is the input" in evaluate(capsys, *inputs, *flags, status=2)[1]
    assert (texts / "ref.de").read_bytes() == before
    (texts / "speed.json").write_text('{"kind": "benchmark"}')
    _, errors = evaluate(capsys, "better.de", "--ref", "ref.de", "--json", "speed.json", status=2)
    assert "`--json` speed.json exists: name another file, or replace it with `--overwrite`" in errors
    evaluate(capsys, "better.de", "--ref", "ref.de", "--json", "speed.json", "--overwrite")
    assert json.loads((texts / "speed.json").read_text())["kind"] == "evaluation"


def test_markdown(texts, capsys):
    printed, _ = evaluate(
        capsys, "better.de", "--ref", "ref.de", "--baseline", "base.de", "--markdown", "--samples", "100"
    )
    lines = printed.splitlines()
    assert lines[0] == "| system | BLEU | 95% CI | p | chrF | 95% CI | p |"
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    assert re.fullmatch(r"\| better \| \d\d\.\d † \| ± \d\.\d \| 0\.\d{4} \| .*", lines[3])


def test_all_problems_at_once(texts, capsys):
    write(texts / "short.de", sentences(119))
    (texts / "empty.de").write_bytes(b"")
    (texts / "latin.de").write_bytes(b"good\nf\xfcr\n")
    hypotheses = ["short.de", "empty.de", "latin.de", "missing.de", "X=better.de", "X=base.de"]
    printed, errors = evaluate(
        capsys, *hypotheses[:4], "--ref", "ref.de", "--metrics", "bleu", "rouge", "comet", "--samples", "0",
        "--decimals", "-1", "--json", "ref.de", "--baseline", "bas", "--tokenize", "moses",
        "--comet-model", "./no.ckpt", status=2,
    )  # fmt: skip
    assert printed == ""
    problems = errors.splitlines()
    assert all(problem.startswith("owf evaluate: error: ") for problem in problems)
    for expected in (
        "`--json` ref.de is the input ref.de",
        "`--baseline` bas is neither a file nor one of the systems: short, empty, latin, missing",
        "`--decimals` must be 0 or more, but is -1",
        "`--metrics` must be of bleu, chrf, spbleu, comet, but is 'rouge'",
        "`--samples` must be at least 1, but is 0",
        "`--tokenize` must be of 13a, char,",
        "`--metrics comet` needs `--src`",
        "short.de has 119 lines, but ref.de has 120",
        "empty.de is empty",
        "latin.de, line 2: not UTF-8 (byte 2 is 0xfc)",
        "missing.de can't be read: No such file or directory",
    ):
        assert sum(expected in problem for problem in problems) == 1, expected
    _, errors = evaluate(capsys, *hypotheses[3:], "--ref", "ref.de", status=2)
    assert "better.de and base.de have one name, 'X'" in errors
    assert "missing.de can't be read" in errors


def test_a_hypothesis_that_a_flag_has_taken(texts, capsys):
    _, errors = evaluate(capsys, "--ref", "ref.de", "base.de", status=2)
    assert "name at least one hypothesis: a flag such as `--ref` takes every name up to the next flag" in errors
    _, errors = evaluate(capsys, "--ref", "ref.de", "--metrics", "bleu", "base.de", status=2)
    assert (
        "`--metrics` must be of bleu, chrf, spbleu, comet, but is 'base.de' (hypotheses go before the flags" in errors
    )
    assert rows(evaluate(capsys, "--ref", "ref.de", "--", "base.de")[0])["base"]


def test_a_json_that_cannot_be_written_does_not_lose_the_table(texts, capsys):
    printed, errors = evaluate(capsys, "base.de", "--ref", "ref.de", "--json", "/dev/full", status=2)
    assert rows(printed)["base"]
    assert errors == "owf evaluate: error: `--json` /dev/full can't be written: No space left on device\n"


def test_a_pipe_is_read_once(texts, capsys):
    reading, writing = os.pipe()
    os.write(writing, (texts / "base.de").read_bytes())
    os.close(writing)
    printed, _ = evaluate(capsys, f"piped=/dev/fd/{reading}", "base.de", "--ref", "ref.de")
    os.close(reading)
    assert rows(printed)["piped"] == rows(printed)["base"]


def test_comet_that_is_not_installed(texts, capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "comet" else find(name, *rest))
    printed, errors = evaluate(
        capsys, "base.de", "--ref", "ref.de", "--src", "src.en", "--metrics", "bleu", "comet", status=2
    )
    assert printed == ""
    assert "`--metrics comet` needs COMET, which is not installed: `pip install '.[comet]'`" in errors
