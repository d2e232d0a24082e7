"""COMET end to end on a tiny model that is made here, without a network: its scores are those that COMET gives."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from evaluation_for_tests import SOURCE, TRANSLATION, evaluate, make_comet, score_with_comet, write

import owf_fairseq

pytest.importorskip("comet", reason="COMET is not installed (extra `comet`)")
pytestmark = pytest.mark.usefixtures("comet_texts")

LINES = len(SOURCE)


def read(path="scores.json"):
    return json.loads(Path(path).read_text())


def expected_scores(checkpoint, hypotheses, reference):
    """What COMET itself gives."""
    import comet

    model = comet.load_from_checkpoint(str(checkpoint))
    lines = (Path(file).read_text().splitlines() for file in ("src.en", hypotheses, reference))
    samples = [{"src": src, "mt": mt, "ref": ref} for src, mt, ref in zip(*lines, strict=True)]
    return model.predict(samples, gpus=0, progress_bar=False).scores


def test_scores_significance_and_signature(tiny_comet, comet_texts, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    printed, errors = score_with_comet(
        capsys, tiny_comet, "--ref", "ref.de", "--baseline", "base", "--json", "scores.json", "--samples", "200"
    )
    # our own words alone, neither Lightning's nor those of the libraries under it
    assert [record.name for record in caplog.records if record.levelno > logging.DEBUG] == []
    assert errors == "owf evaluate: warning: wide.de: nothing in 1 of 40 lines (1): they count as wrong\n"
    found = read()
    for system in found["systems"]:
        scores = expected_scores(tiny_comet, system["file"], "ref.de")
        assert system["scores"]["comet"]["score"] == pytest.approx(100 * sum(scores) / LINES, abs=1e-4)
    metric = found["metrics"]["comet"]
    assert metric["signature"].startswith("nrefs:1|bs:200|seed:12345|model:tiny-comet|version:comet ")
    assert metric["file"] == str(tiny_comet)
    assert found["versions"]["unbabel-comet"] == metric["signature"].split()[-1]
    base, wide = (system["scores"]["comet"] for system in found["systems"])
    assert (base["p_value"], base["significant"]) == (None, None)
    assert 1 / 201 <= wide["p_value"] <= 1
    assert wide["significant"] is (wide["p_value"] < 0.05)
    assert printed.splitlines()[0].split() == ["system", "COMET", "95%", "CI", "p"]
    assert f"{wide['score']:.1f}" in printed.splitlines()[3]
    assert not (comet_texts / "home").exists()  # nothing is kept


def test_nothing_else_is_printed(tiny_comet, comet_texts):
    """In a process of its own, where the libraries are imported and set up their logs."""
    arguments = ["base.de", "--ref", "ref.de", "--src", "src.en", "--metrics", "bleu", "comet", "--cpu"]
    program = "import sys; sys.argv[0] = 'owf'; from owf_fairseq.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, "evaluate", *arguments, "--comet-model", tiny_comet],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(owf_fairseq.__file__).parents[1])},
    )
    assert (done.returncode, done.stdout.split()[:3]) == (0, ["system", "BLEU", "COMET"])
    assert re.sub("scoring: .*\n", "", done.stderr) == ""  # but for the progress


def test_a_difference_that_is_significant(tiny_comet, comet_texts, capsys):
    """Every segment is better, so that every sample of the bootstrap is."""
    first = [*expected_scores(tiny_comet, "base.de", "ref.de")]
    second = expected_scores(tiny_comet, "wide.de", "ref.de")
    base, wide = ((comet_texts / name).read_text().splitlines() for name in ("base.de", "wide.de"))
    better = [a < b for a, b in zip(first, second, strict=True)]
    write(comet_texts / "base.de", [a if up else b for a, b, up in zip(base, wide, better, strict=True)])
    write(comet_texts / "wide.de", [b if up else a for a, b, up in zip(base, wide, better, strict=True)])
    printed, _ = score_with_comet(
        capsys, tiny_comet, "--ref", "ref.de", "--baseline", "base.de", "--json", "scores.json"
    )
    wide_score = read()["systems"][1]["scores"]["comet"]
    assert wide_score["p_value"] == 1 / 1001
    assert "†" in printed.splitlines()[3]


def test_several_references_are_averaged(tiny_comet, capsys):
    printed, _ = score_with_comet(capsys, tiny_comet.parents[1], "--ref", "ref.de", "ref2.de", "--json", "scores.json")
    both = read()["systems"][0]["scores"]["comet"]["score"]
    alone = [expected_scores(tiny_comet, "base.de", reference) for reference in ("ref.de", "ref2.de")]
    assert both == pytest.approx(100 * sum(map(sum, alone)) / (2 * LINES), abs=1e-4)
    assert "COMET: nrefs:2|model:tiny-comet|refs:mean|version:comet" in printed
    assert "each the mean over the references" in printed


def test_with_other_metrics_and_a_hub_cache_of_links(tiny_comet, comet_texts, capsys):
    """In the hub's cache a checkpoint is a link to a file that lies somewhere else."""
    (comet_texts / "cache" / "checkpoints").mkdir(parents=True)
    (comet_texts / "cache" / "checkpoints" / "model.ckpt").symlink_to(tiny_comet)
    (comet_texts / "cache" / "hparams.yaml").write_bytes((tiny_comet.parents[1] / "hparams.yaml").read_bytes())
    flags = ["--comet-model", "cache/checkpoints/model.ckpt", "--src", "src.en", "--cpu"]
    printed, _ = evaluate(capsys, "base.de", *flags, "--ref", "ref.de", "--metrics", "bleu", "comet", "chrf")
    assert printed.splitlines()[0].split() == ["system", "BLEU", "COMET", "chrF"]
    assert "COMET: nrefs:1|model:cache|" in printed


def test_directions(tiny_comet, comet_texts, capsys):
    for name, files in {"base": {"base.de": "en-de.hyp", "wide.de": "de-en.hyp"}, "refs": {"ref.de": "ref.de"}}.items():
        (comet_texts / name).mkdir()
        for old, new in files.items():
            (comet_texts / name / new).write_bytes((comet_texts / old).read_bytes())
    (comet_texts / "refs" / "ref.en").write_bytes((comet_texts / "ref.de").read_bytes())
    (comet_texts / "sources").mkdir()
    for language in ("de", "en"):
        (comet_texts / "sources" / f"{language}.txt").write_bytes((comet_texts / "src.en").read_bytes())
    flags = ["--metrics", "comet", "--comet-model", tiny_comet, "--json", "scores.json"]
    evaluate(capsys, "--directions", "base", "--ref", "refs", "--src", "sources", *flags)
    (system,) = read()["systems"]
    scores = {
        "en-de": expected_scores(tiny_comet, "base.de", "ref.de"),
        "de-en": expected_scores(tiny_comet, "wide.de", "ref.de"),
    }
    for direction, segments in scores.items():
        found = system["directions"][direction]["scores"]["comet"]["score"]
        assert found == pytest.approx(100 * sum(segments) / LINES, abs=1e-4)
    together = 100 * sum(map(sum, scores.values())) / (2 * LINES)
    assert system["scores"]["comet"]["score"] == pytest.approx(together, abs=1e-4)


def test_a_model_without_references(comet_encoder, comet_texts, capsys):
    from comet.models import ReferencelessRegression

    checkpoint = make_comet(comet_texts / "estimator", ReferencelessRegression, pretrained_model=comet_encoder)
    scores = []
    for references in (["ref.de"], ["ref2.de", "ref.de"]):
        printed, _ = score_with_comet(capsys, checkpoint, "--ref", *references, "--json", "scores.json", "--overwrite")
        scores.append(read()["systems"][0]["scores"]["comet"]["score"])
    assert scores[0] == scores[1]
    assert "COMET: nrefs:0|model:estimator|version" in printed
    assert "which this model finds without the references" in printed


def test_no_reference_is_needed_by_a_model_that_reads_none(comet_encoder, tiny_comet, comet_texts, capsys):
    from comet.models import ReferencelessRegression

    checkpoint = make_comet(comet_texts / "estimator", ReferencelessRegression, pretrained_model=comet_encoder)
    scores = []
    for references in ([], ["--ref", "ref.de"]):
        printed, errors = score_with_comet(
            capsys,
            checkpoint,
            *references,
            "--baseline",
            "base",
            "--samples",
            "50",
            "--json",
            "scores.json",
            "--overwrite",
        )
        scores.append(read()["systems"])
        assert ("no reference" in printed) == (not references)
        assert errors == "owf evaluate: warning: wide.de: nothing in 1 of 40 lines (1): they count as wrong\n"
    assert scores[0] == scores[1]
    _, errors = score_with_comet(capsys, tiny_comet, status=2)
    assert f"`--comet-model` {tiny_comet} scores against references: give `--ref`" in errors
    flags = ["base.de", "--src", "src.en", "--comet-model", str(checkpoint), "--metrics", "bleu", "comet"]
    _, errors = evaluate(capsys, *flags, status=2)
    assert "`--ref` is missing: only COMET's reference-free models do without" in errors
    _, errors = evaluate(capsys, ".", "--directions", status=2)
    assert "`--directions` needs `--ref`" in errors


def test_progress_counts_segments(tiny_comet):
    from owf_fairseq.scoring.comet_checkpoint import find_model

    done = []
    find_model(str(tiny_comet), cpu=True)().segment_scores(SOURCE, TRANSLATION, TRANSLATION, done.append)
    assert sum(done) == LINES
    assert len(done) == 3  # of 16 segments
