"""Several trainings of one configuration with other seeds: their mean, their deviation, and a test of both levels.

The test is the multi-bootstrap (Sellam et al., 2022, "The MultiBERTs: BERT Reproductions for Robustness Analysis") for
systems whose seeds have nothing in common. It is Koehn's paired bootstrap (2004) with a second level: a replicate draws
segments, the same for all systems, and runs of each configuration, independently. Clark et al. (2011, "Better
Hypothesis Testing for Statistical Machine Translation: Controlling for Optimizer Instability") say why trainings must
be repeated.

The p-value is how often a drawn difference is farther from the mean of all drawn ones than the real difference is from
0. sacreBLEU's, of single runs, takes absolute values before it centres, which calls twice as many configurations
different that do not differ: `scripts/measure/bootstrap_level.py`. Two or three runs say little of the spread between
seeds, and one says nothing of it.
"""

from __future__ import annotations

import os
import statistics as of_numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from owf_fairseq.model_names import without_seed
from owf_fairseq.scoring.significance import LEVEL, SystemScore, score_systems

if TYPE_CHECKING:
    import numpy as np

    from owf_fairseq.scoring.metrics import Metric, Statistics

SEEDS_TEST = {"test": "two-level bootstrap over seeds and segments", "source": "Sellam et al., 2022; Koehn, 2004"}
"""For JSON: what the p-values are of."""

Runs = dict[str, list[str]]
"""The names of a configuration's runs, by its own name."""


@dataclass(frozen=True)
class RunsScore(SystemScore):
    """What a metric says of a configuration; ``score`` is the mean over its runs.

    Attributes:
        sd: the sample standard deviation over the runs; None for a single one.
        n: how many runs.
        by_run: their scores.
    """

    sd: float | None = None
    n: int = 1
    by_run: tuple[float, ...] = ()


def group_runs(names: Sequence[str]) -> Runs:
    """Puts ``NAME_seed_N``, as `owf train --seeds` names its folders, into ``NAME``; others stand alone."""
    runs: Runs = {}
    for name in names:
        runs.setdefault(without_seed(name), []).append(name)
    return runs


def score_configurations(
    metric: Metric, statistics: Mapping[str, Statistics], runs: Runs, baselines: Mapping[str, str], samples: int
) -> tuple[dict[str, SystemScore], Any]:
    """The score of every configuration, and whether it differs from its baseline's.

    The segments that are drawn are those of sacreBLEU's paired bootstrap.

    Args:
        metric: for the sums of statistics.
        statistics: of every run, segment by segment.
        runs: of every configuration.
        baselines: see `baselines.Baselines`, of configurations; empty for scores alone.
        samples: of the bootstrap.

    Returns:
        The scores by configuration, and sacreBLEU's signature of them.
    """
    single, signature = score_systems(metric, statistics, {}, samples)
    by_run = {name: tuple(single[run].score for run in members) for name, members in runs.items()}
    means = {name: of_numbers.fmean(scores) for name, scores in by_run.items()}
    drawn: dict[str, np.ndarray] = {}
    if baselines:
        seed = os.environ.get("SACREBLEU_SEED", "12345").lower()
        drawn = _drawn_means(metric, statistics, runs, samples, None if seed == "none" else int(seed))
        signature.update("bs", samples)
        signature.update("seed", seed)
    found: dict[str, SystemScore] = {}
    for name, scores in by_run.items():
        sd = of_numbers.stdev(scores) if len(scores) > 1 else None
        p_value = mean = ci95 = None
        if baselines:
            from sacrebleu.significance import estimate_ci

            mean, ci95 = map(float, estimate_ci(drawn[name]))
            base = baselines[name]
            if base != name:
                p_value = _p_value(drawn[base], drawn[name], abs(means[base] - means[name]))
        significant = None if p_value is None else p_value < LEVEL
        found[name] = RunsScore(means[name], p_value, significant, mean, ci95, sd, len(scores), scores)
    return found, signature


def _drawn_means(
    metric: Metric, statistics: Mapping[str, Statistics], runs: Runs, samples: int, seed: int | None
) -> dict[str, np.ndarray]:
    """For each configuration its mean over drawn runs on drawn segments: ``(samples,)``."""
    import numpy as np

    names = [name for members in runs.values() for name in members]
    table = np.stack([np.asarray(statistics[name], dtype=np.float64) for name in names], axis=1)  # segment, run, column
    segments = len(table)
    flat = table.reshape(segments, -1)
    chance = np.random.default_rng(seed)
    # Segments first: they are sacreBLEU's, whatever runs there are.
    drawn_segments = chance.choice(segments, size=(samples, segments), replace=True)
    scores = np.empty((samples, len(names)))
    for sample, drawn in enumerate(drawn_segments):
        sums = (np.bincount(drawn, minlength=segments) @ flat).reshape(len(names), -1)
        # float32 as in sacreBLEU, or the scores would differ in the seventh digit
        scores[sample] = [metric._compute_score_from_stats(row).score for row in sums.astype(np.float32)]
    found, first = {}, 0
    for name, members in runs.items():
        drawn_runs = first + chance.integers(len(members), size=(samples, len(members)))
        found[name] = np.take_along_axis(scores, drawn_runs, axis=1).mean(axis=1)
        first += len(members)
    return found


def _p_value(base: np.ndarray, other: np.ndarray, difference: float) -> float:
    """How often the differences, moved to where they would be by chance, are beyond the real one."""
    import numpy as np

    if difference == 0:
        return 1.0
    differences = other - base
    beyond = int(np.sum(np.abs(differences - differences.mean()) > difference))
    return (beyond + 1) / (len(differences) + 1)


def seed_notes(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What must be known to read ``mean ± sd``.

    Args:
        scores: of one metric, by configuration, as in JSON.
    """
    numbers = {name: entry["n"] for name, entry in scores.items() if "n" in entry}
    if not numbers:
        return []
    if len(set(numbers.values())) == 1:
        counts = f"n = {next(iter(numbers.values()))}"
    else:
        counts = ", ".join(f"n = {number} for {name}" for name, number in numbers.items())
    few = "" if min(numbers.values()) > 3 else "; so few say little of the spread between seeds"
    return [f"scores: mean ± sample standard deviation over seeds, {counts}{few}"]
