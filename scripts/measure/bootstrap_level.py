#!/usr/bin/env python3
"""How often do the tests of `owf evaluate` call configurations different that do not differ? 5 % would be right.

example:
  python scripts/measure/bootstrap_level.py --json docs/results/bootstrap_level.json
  python scripts/measure/bootstrap_level.py --pairs 4000

Draws the scores of segments with normal noise, which a metric averages: of the segment (the same for both
configurations), of the configuration on the segment, of the run on the segment, and of the run's seed on all segments.
The test of single runs is sacreBLEU's paired bootstrap; that of several is the two-level bootstrap of --seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

import numpy as np

from owf_fairseq.errors import InputError
from owf_fairseq.files.outputs import write_output
from owf_fairseq.progress import Progress
from owf_fairseq.scoring.seeds import group_runs, score_configurations
from owf_fairseq.scoring.significance import score_systems
from owf_fairseq.tables import markdown_table

SEGMENTS = 200
CASES = [(1, False), (1, True), (2, True), (3, True), (5, True)]
"""Runs of each configuration, and whether seeds make a difference."""


class Mean:
    """A metric that averages scores; statistics are a score and its count."""

    def __init__(self) -> None:
        from sacrebleu.metrics.base import Signature

        self.get_signature = lambda: Signature({"num_refs": 1})

    def _aggregate_and_compute(self, rows: Any) -> Any:
        return self._compute_score_from_stats(np.sum(rows, axis=0))

    def _compute_score_from_stats(self, sums: Any) -> Any:
        from sacrebleu.metrics.base import Score

        return Score("mean", float(sums[0] / sums[1]))


def draw(chance: np.random.Generator, runs: int, seeds: bool) -> dict[str, np.ndarray]:
    """Statistics of two configurations that do not differ, by run: ``(segments, 2)``."""
    common, found = chance.normal(size=SEGMENTS), {}
    for name in ("a", "b"):
        own = chance.normal(size=SEGMENTS)
        for run in range(runs):
            scores = common + own + chance.normal(size=SEGMENTS) + seeds * chance.normal() / SEGMENTS**0.5
            found[f"{name}_seed_{run}"] = np.stack([scores, np.ones(SEGMENTS)], axis=1)
    return found


def main(argv: list[str] | None = None) -> int:
    """Draws, tests, counts and prints the table.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1000, metavar="N", help="of configurations (default: 1000)")
    parser.add_argument("--samples", type=int, default=300, metavar="N", help="of a bootstrap (default: 300)")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON")
    args = parser.parse_args(argv)
    if min(args.pairs, args.samples) < 1:
        parser.error("--pairs and --samples must be at least 1")
    chance, metric = np.random.default_rng(1), Mean()
    rows = []
    with Progress("pairs", args.pairs * len(CASES)) as progress:
        for runs, seeds in CASES:
            hits = {"single": 0, "two levels": 0}
            for pair in range(args.pairs):
                os.environ["SACREBLEU_SEED"] = str(pair)  # else all draws are the same
                drawn = draw(chance, runs, seeds)
                how: Any = ({"a": "a", "b": "a"}, args.samples)
                two, _ = score_configurations(metric, drawn, group_runs([*drawn]), *how)  # type: ignore[arg-type]
                one, _ = score_systems(metric, {name: drawn[f"{name}_seed_0"].tolist() for name in "ab"}, *how)  # type: ignore[arg-type]
                hits["two levels"] += bool(two["b"].significant)
                hits["single"] += bool(one["b"].significant)
                progress.advance(1)
            shares = {name: f"{100 * count / args.pairs:.1f} %" for name, count in hits.items()}
            rows.append(
                {
                    "runs of each": str(runs),
                    "seeds differ": "yes" if seeds else "no",
                    "the first runs, sacreBLEU's test": shares["single"],
                    "all runs, `--seeds`": shares["two levels"],
                }
            )
    try:
        if args.json:
            made_by = "python scripts/measure/bootstrap_level.py --json docs/results/bootstrap_level.json"
            text = json.dumps(
                {"made_by": made_by, "pairs": args.pairs, "samples": args.samples, "rows": rows}, indent=1
            )
            write_output("--json", args.json, text.split("\n"))
    except InputError as error:
        print(f"bootstrap_level.py: error: {error}", file=sys.stderr)
        return 2
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows], words=(1,)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
