"""The bootstrap of statistics is sacreBLEU's, for any metric, and is not fooled by a system that is the baseline."""

import numpy as np
import pytest
from evaluation_for_tests import sentences, spoil
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Score, Signature
from sacrebleu.significance import PairedTest

from owf_fairseq.scoring.significance import score_systems

REFERENCE = sentences(80)
SYSTEMS = {name: spoil(REFERENCE, share, seed=7) for name, share in (("base", 0.5), ("near", 0.47), ("far", 0.2))}


@pytest.mark.parametrize("make", [BLEU, CHRF])
def test_as_paired_test_on_texts(make):
    metric = make(references=[REFERENCE])
    _, theirs = PairedTest(list(SYSTEMS.items()), {"metric": metric}, None, test_type="bs", n_samples=200)()
    statistics = {name: metric._extract_corpus_statistics(lines, None) for name, lines in SYSTEMS.items()}
    scores, signature = score_systems(metric, statistics, dict.fromkeys(statistics, "base"), 200)
    (expected,) = (column for name, column in theirs.items() if name != "System")
    for score, result in zip(scores.values(), expected, strict=True):
        assert (score.score, score.p_value) == (result.score, result.p_value)
        assert (score.mean, score.ci95) == (result.mean, result.ci)
    assert not scores["near"].significant
    assert scores["far"].significant
    assert (signature.info["bs"], signature.info["seed"]) == (200, "12345")


class Mean:
    """A metric with the mean of the segments' scores."""

    def _aggregate_and_compute(self, stats):
        return Score("mean", float(np.mean([row[0] for row in stats])))

    def _compute_score_from_stats(self, stats):
        return Score("mean", float(stats[0] / stats[1]))

    def get_signature(self):
        return Signature({"num_refs": 1})


def test_p_values_of_planted_differences():
    noise = np.random.default_rng(3)
    base = noise.normal(0.5, 0.2, 400)
    systems = {
        "base": base,
        "copy": base.copy(),
        "noise": base + noise.normal(0, 0.1, 400),
        "better": base + noise.normal(0.05, 0.1, 400),
        "worse": base - noise.normal(0.05, 0.1, 400),
    }
    statistics = {name: [[value, 1.0] for value in values] for name, values in systems.items()}
    scores, _ = score_systems(Mean(), statistics, dict.fromkeys(statistics, "base"), 1000)
    significant = {name: score.significant for name, score in scores.items()}
    assert significant == {"base": None, "copy": False, "noise": False, "better": True, "worse": True}
    assert scores["copy"].p_value == 1
    # The interval of a mean is 1.96 standard errors wide on each side.
    assert scores["base"].ci95 == pytest.approx(1.96 * base.std() / 400**0.5, rel=0.1)


def test_without_a_baseline_there_are_scores_alone():
    scores, signature = score_systems(Mean(), {"one": [[0.25, 1.0], [0.75, 1.0]]}, {}, 1000)
    assert (scores["one"].score, scores["one"].p_value, scores["one"].significant) == (0.5, None, None)
    assert signature.info["bs"] is None
