#!/usr/bin/env python3
"""Prints the runs of the study whose results are not there yet, in the order in which they are wanted.

example:
  python scripts/study/missing.py --results docs/study/runs
  python scripts/study/missing.py --results docs/study/runs --only attention

Each line is what scripts/study/run.py takes: NAME --seed N.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from _runs import ORDER, QUESTIONS, SMOKE, runs

from owf_fairseq.errors import InputError


def main(argv: list[str] | None = None) -> int:
    """Prints them.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="with a folder for each run")
    parser.add_argument("--only", metavar="QUESTION", help=f"one of {', '.join(QUESTIONS)} (default: all)")
    parser.add_argument("--smoke", action="store_true", help="a few runs, to see that everything works")
    args = parser.parse_args(argv)
    try:
        wanted = runs(args.only, SMOKE if args.smoke else ORDER)
    except InputError as error:
        print(f"missing.py: error: {error}", file=sys.stderr)
        return 2
    for run in wanted:
        if not (args.results / run.folder / "run.json").exists():
            print(f"{run.name} --seed {run.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
