"""Several runs of a configuration: mean, deviation, and a bootstrap that draws both runs and segments."""

import json
import time

import numpy as np
import pytest
from evaluation_for_tests import evaluate, report_cells, sentences, spoil, write
from sacrebleu import corpus_bleu
from sacrebleu.metrics import BLEU, CHRF

from owf_fairseq import cli
from owf_fairseq.paper.report import report
from owf_fairseq.paper.results import read_results
from owf_fairseq.scoring.seeds import group_runs, score_configurations, seed_notes
from owf_fairseq.scoring.significance import score_systems

REFERENCE = sentences(60)
TEXTS = {
    **{f"base_seed_{n}": spoil(REFERENCE, 0.5, seed=n) for n in (1, 2)},
    **{f"near_seed_{n}": spoil(REFERENCE, 0.48, seed=10 + n) for n in (1, 2, 3)},
    **{f"far_seed_{n}": spoil(REFERENCE, 0.2, seed=20 + n) for n in (1, 2, 3)},
}


def scores(texts, baseline, make=BLEU, samples=200):
    metric = make(references=[REFERENCE])
    statistics = {name: metric._extract_corpus_statistics(lines, None) for name, lines in texts.items()}
    runs = group_runs([*texts])
    return score_configurations(metric, statistics, runs, dict.fromkeys(runs, baseline), samples)


def test_names_of_owf_train_are_grouped():
    names = ["a_seed_1", "b", "a_seed_12", "seed_1", "b_seed_x"]
    alone = {name: [name] for name in ("b", "seed_1", "b_seed_x")}
    assert group_runs(names) == {"a": ["a_seed_1", "a_seed_12"], **alone}


def test_as_corpus_bleu_of_drawn_sentences():
    """Each replicate is scored by sacreBLEU on the texts themselves."""
    texts, samples = {name: TEXTS[name] for name in TEXTS if "far" not in name}, 40
    chance = np.random.default_rng(12345)
    drawn = chance.choice(60, size=(samples, 60), replace=True)
    runs = {"base": chance.integers(2, size=(samples, 2)) + 1, "near": chance.integers(3, size=(samples, 3)) + 1}

    def bleu(name, lines):
        picked = [[text[line] for line in lines] for text in (texts[name], REFERENCE)]
        return corpus_bleu(picked[0], [picked[1]]).score

    def mean(name, sample):
        return np.mean([bleu(f"{name}_seed_{run}", drawn[sample]) for run in runs[name][sample]])

    means = {name: np.array([mean(name, sample) for sample in range(samples)]) for name in runs}
    whole = {name: [bleu(one, range(60)) for one in texts if one.startswith(name)] for name in means}
    apart = abs(np.mean(whole["base"]) - np.mean(whole["near"]))
    differences = means["base"] - means["near"]
    expected = (1 + sum(abs(differences - differences.mean()) > apart)) / (1 + samples)
    found, signature = scores(texts, "base", samples=samples)
    assert found["near"].p_value == pytest.approx(expected)
    for name in means:
        assert found[name].score == pytest.approx(np.mean(whole[name]))
        assert found[name].sd == pytest.approx(np.std(whole[name], ddof=1))
        assert found[name].by_run == pytest.approx(whole[name])
        assert found[name].mean == pytest.approx(means[name].mean(), rel=1e-5)
    assert (found["base"].n, found["near"].n, found["base"].p_value) == (2, 3, None)
    assert (signature.info["bs"], signature.info["seed"]) == (samples, "12345")


@pytest.mark.parametrize("make", [BLEU, CHRF])
def test_with_one_run_each_the_samples_are_those_of_the_paired_bootstrap(make):
    texts = {name: TEXTS[f"{name}_seed_1"] for name in ("base", "near", "far")}
    metric = make(references=[REFERENCE])
    statistics = {name: metric._extract_corpus_statistics(lines, None) for name, lines in texts.items()}
    expected, signature = score_systems(metric, statistics, dict.fromkeys(texts, "base"), 200)
    found, ours = scores(texts, "base", make)
    assert str(ours) == str(signature)
    for name, score in expected.items():
        one = found[name]
        assert (one.score, one.significant) == (score.score, score.significant)
        assert (one.p_value or 0) >= (score.p_value or 0)  # which sacreBLEU computes less strictly
        assert (one.mean, one.ci95) == pytest.approx((score.mean, score.ci95))
        assert (one.sd, one.n) == (None, 1)


def test_a_copy_never_differs_and_a_far_better_one_does():
    copies = {name.replace("base", "copy"): lines for name, lines in TEXTS.items() if "base" in name}
    found, _ = scores({**TEXTS, **copies}, "base")
    assert (found["copy"].p_value, found["copy"].significant) == (1, False)
    assert found["far"].p_value == pytest.approx(1 / 201)
    assert found["far"].significant


def test_seeds_that_lie_far_apart_make_a_difference_uncertain():
    """The pair of single runs differs; the configuration that it stands for has runs on both sides of the baseline."""
    base = {f"base_seed_{n}": spoil(REFERENCE, 0.4, seed=n) for n in (1, 2, 3)}
    wild = {f"wild_seed_{n}": spoil(REFERENCE, share, seed=9 + n) for n, share in ((1, 0.1), (2, 0.4), (3, 0.6))}
    assert scores({"base": base["base_seed_1"], "wild": wild["wild_seed_1"]}, "base")[0]["wild"].significant
    assert not scores(base | wild, "base")[0]["wild"].significant


def test_notes_say_how_many_and_that_few_are_few():
    (note,) = seed_notes({"a": {"n": 4}})
    assert note.endswith("n = 4")
    (note,) = seed_notes({"a": {"n": 2}, "b": {"n": 5}})
    assert "n = 2 for a, n = 5 for b; so few" in note
    assert seed_notes({"a": {"score": 1.0}}) == []  # of a file without seeds


def test_takes_seconds():
    begun, reference = time.monotonic(), sentences(1000)
    metric = BLEU(references=[reference])
    statistics = {
        f"{name}_seed_{n}": metric._extract_corpus_statistics(spoil(reference, 0.3, seed=n), None)
        for name in "abcde"
        for n in (1, 2, 3)
    }
    runs = group_runs([*statistics])
    score_configurations(metric, statistics, runs, dict.fromkeys(runs, "a"), 1000)
    assert time.monotonic() - begun < 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Translations where `owf train --seeds` has its checkpoints."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ref.de", REFERENCE)
    for name, lines in TEXTS.items():
        own = name.replace("base", "tiny").replace("far", "tiny_one_wide_ffn")
        if "near" not in own:
            (tmp_path / own).mkdir()
            write(tmp_path / own / "test.de", lines)
    return tmp_path


def test_from_files_to_the_papers_table(folder, capsys):
    files = [str(path.relative_to(folder)) for path in sorted(folder.glob("*_seed_*/test.de"))]
    flags = ["--ref", "ref.de", "--seeds", "--baseline", "tiny", "--samples", "200", "--json", "scores.json"]
    printed, _ = evaluate(capsys, *files, *flags)
    data = json.loads((folder / "scores.json").read_text())
    systems = {one["name"]: one for one in data["systems"]}
    assert [*systems] == ["tiny_one_wide_ffn", "tiny"]
    bleu = [corpus_bleu(TEXTS[f"far_seed_{n}"], [REFERENCE]).score for n in (1, 2, 3)]
    entry = systems["tiny_one_wide_ffn"]["scores"]["bleu"]
    assert entry["by_run"] == pytest.approx(bleu)
    assert (entry["score"], entry["sd"], entry["n"]) == pytest.approx((np.mean(bleu), np.std(bleu, ddof=1), 3))
    runs = systems["tiny_one_wide_ffn"]["runs"]
    assert [run["file"] for run in runs] == [f"tiny_one_wide_ffn_seed_{n}/test.de" for n in (1, 2, 3)]
    shown = f"{np.mean(bleu):.1f} ± {np.std(bleu, ddof=1):.1f} †"
    assert shown in printed
    assert "n = 3 for tiny_one_wide_ffn, n = 2 for tiny" in printed
    assert "two-level bootstrap over seeds and segments (Sellam et al., 2022; Koehn, 2004)" in printed
    made = report(read_results(["scores.json"]), "one_wide", only_ours=True)
    assert [(row["model"].split("(")[-1], row["BLEU"]) for row in report_cells(made)][1] == (
        "tiny_one_wide_ffn)",
        shown,
    )
    notes = "\n".join(made.notes)
    assert "n = 3 for tiny_one_wide_ffn, n = 2 for tiny" in notes
    assert "two-level bootstrap over seeds and segments of Sellam et al., 2022" in notes
    again, said = evaluate(capsys, *files, *flags)
    assert again == printed
    assert "made before" in said


def test_refuses(folder, capsys):
    file = "tiny_seed_1/test.de"
    _, said = evaluate(capsys, f"tiny_seed_1={file}", "--ref", "ref.de", "--seeds", "--baseline", "big", status=2)
    assert "`--baseline` big is none of the models: tiny" in said
    assert cli.main(["evaluate", "--directions", "tiny_seed_1", "--ref", ".", "--seeds"]) == 2
    assert "`--seeds` does not go with `--directions`" in capsys.readouterr().err
