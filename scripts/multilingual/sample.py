#!/usr/bin/env python3
"""Draws lines evenly from all training text in each language, as many in each, for a vocabulary to be learnt from.

A line that is drawn already, because it is in the text of several pairs, is passed over for the next one. Languages
whose file is there already are left alone.

example:
  python scripts/multilingual/sample.py --raw runs/multilingual/raw --output runs/multilingual/sample --lines 300000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from owf_fairseq.files.lines import atomic_path


def draw(files: Sequence[Path], wanted: int) -> Iterator[bytes]:
    """Yields lines, with their ends, of all the files together."""
    total = sum(sum(1 for _ in open(file, "rb")) for file in files)  # noqa: SIM115
    drawn: set[bytes] = set()
    number = 0
    for file in files:
        with open(file, "rb") as lines:
            for line in lines:
                if len(drawn) == wanted:
                    return
                if len(drawn) <= number * wanted // total and line not in drawn:
                    drawn.add(line)
                    yield line
                number += 1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", required=True, type=Path, metavar="DIR", help="has train.A-B.{A,B}")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="gets LANG.txt for each language")
    parser.add_argument("--lines", type=int, default=300_000, metavar="N", help="of each language (default: 300000)")
    args = parser.parse_args(argv)
    langs = sorted({file.suffix[1:] for file in args.raw.glob("train.*-*.*")})
    if args.lines < 1:
        print(f"sample: `--lines` must be at least 1, but is {args.lines}", file=sys.stderr)
        return 2
    if not langs:
        print(f"sample: `--raw` {args.raw} has no text: run scripts/multilingual/download.sh first", file=sys.stderr)
        return 2
    for lang in langs:
        output = args.output / f"{lang}.txt"
        if not output.exists():
            with atomic_path(output) as temporary, open(temporary, "wb") as file:
                file.writelines(draw(sorted(args.raw.glob(f"train.*-*.{lang}")), args.lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
