"""Prints the first lines of several texts under each other: of a source, its reference, and translations.

example:
  python scripts/quickstart/show.py source=raw/test.en reference=raw/test.de owf_small=owf_small/test.de
"""

from __future__ import annotations

import argparse
from itertools import islice

from owf_fairseq.files.lines import stream_lines


def main(argv: list[str] | None = None) -> int:
    """Prints a block for each line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", metavar="LABEL=FILE")
    parser.add_argument("--lines", type=int, default=10, metavar="N", help="of each text (default: 10)")
    args = parser.parse_args(argv)
    labels, paths = zip(*(text.partition("=")[::2] for text in args.texts), strict=True)
    for lines in islice(zip(*map(stream_lines, paths), strict=False), args.lines):
        for label, line in zip(labels, lines, strict=True):
            print(f"{label:<24} {line}")
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
