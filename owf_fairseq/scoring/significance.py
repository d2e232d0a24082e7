"""Paired bootstrap resampling (Koehn, 2004), as sacreBLEU does it, for every metric that has statistics of segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from owf_fairseq.scoring.quiet import quietly

if TYPE_CHECKING:
    from owf_fairseq.scoring.metrics import Metric, Statistics

LEVEL = 0.05
"""Below it a difference is called significant; the paper marks it with a dagger."""


@dataclass(frozen=True)
class SystemScore:
    """What a metric says of a system. Everything but the score is None where there is no baseline.

    Attributes:
        score: 0 to 100 (COMET's may be below or above).
        p_value: that the system and the baseline do not differ; None for the baseline itself.
        significant: whether it is below ``LEVEL``: the difference may go either way.
        mean, ci95: of the resampled scores, the mean and half the width of the 95 % confidence interval.
    """

    score: float
    p_value: float | None = None
    significant: bool | None = None
    mean: float | None = None
    ci95: float | None = None


def score_systems(
    metric: Metric, statistics: Mapping[str, Statistics], baselines: Mapping[str, str], samples: int
) -> tuple[dict[str, SystemScore], Any]:
    """The score of every system, and whether it differs from its baseline's.

    The numbers are those of ``sacrebleu --paired-bs``, with one exception: to a system whose score is the baseline's,
    such as the baseline given again, sacreBLEU gives the smallest p-value that there is; here it is 1.

    Args:
        metric: for the sums of statistics.
        statistics: of every system, segment by segment.
        baselines: see `baselines.Baselines`; empty for scores alone.
        samples: of the bootstrap.

    Returns:
        The scores by system, and sacreBLEU's signature of them.
    """
    if not baselines:
        scores = {name: SystemScore(metric._aggregate_and_compute(rows).score) for name, rows in statistics.items()}
        return scores, metric.get_signature()
    scores, signature = {}, None
    for baseline in dict.fromkeys(baselines.values()):
        compared = {name: rows for name, rows in statistics.items() if baselines[name] == baseline}
        found, signature = _compare(metric, {baseline: statistics[baseline], **compared}, samples)
        scores |= found
    return {name: scores[name] for name in statistics}, signature


def _compare(metric: Metric, statistics: Mapping[str, Statistics], samples: int) -> tuple[dict[str, SystemScore], Any]:
    """The scores of a baseline, which is the first, and of the systems that are compared with it; their signature."""
    from sacrebleu.significance import PairedTest

    with quietly():  # it logs its steps
        test = PairedTest(
            [(name, rows) for name, rows in statistics.items()],  # type: ignore[misc]
            {"metric": _Collected(metric)},  # type: ignore[dict-item]
            references=None,
            test_type="bs",
            n_samples=samples,
        )
        signatures, results = test()
    (signature,) = signatures.values()
    (values,) = (column for key, column in results.items() if key != "System")
    scores = {}
    for name, result in zip(statistics, values, strict=True):
        assert not isinstance(result, str)
        # numbers of numpy in some versions
        p_value, mean, ci95 = (
            None if value is None else float(value) for value in (result.p_value, result.mean, result.ci)
        )
        if p_value is not None and result.score == values[0].score:  # type: ignore[union-attr]
            p_value = 1.0
        significant = None if p_value is None else p_value < LEVEL
        scores[name] = SystemScore(float(result.score), p_value, significant, mean, ci95)
    return scores, signature


class _Collected:
    """A metric whose statistics are there already: they are what PairedTest takes for hypotheses."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._aggregate_and_compute = metric._aggregate_and_compute
        self._compute_score_from_stats = metric._compute_score_from_stats
        self.get_signature = metric.get_signature

    def _extract_corpus_statistics(self, hypotheses: Statistics, references: None) -> Statistics:
        return hypotheses
