#!/usr/bin/env python3
"""Writes Romanian with commas below: a copy of a text in which ş and ţ with a cedilla are ș and ț.

A letter with a cedilla is one character, or the letter and U+0327. All else stays as it is.

example:
  python scripts/wmt16_en_ro/commas_below.py original/train.ro raw/train.ro
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from owf_fairseq.errors import InputError
from owf_fairseq.files.outputs import check_output_file, write_output

CEDILLA = "\N{COMBINING CEDILLA}"
COMMAS = dict(zip("ŞşŢţ", "ȘșȚț", strict=True))


def with_commas(line: str) -> str:
    """A line as it should be written."""
    for wrong, right in [*COMMAS.items(), *zip((letter + CEDILLA for letter in "SsTt"), "ȘșȚț", strict=True)]:
        line = line.replace(wrong, right)
    return line


def corrected(source: Path) -> Iterator[str]:
    """The lines of a text, as they should be."""
    with open(source, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield with_commas(line.removesuffix("\n"))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, metavar="INPUT", help="text, UTF-8, one sentence a line")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="the file to write; one that is there is replaced")
    args = parser.parse_args(argv)
    try:
        problems = check_output_file("OUTPUT", args.output, overwrite=True, inputs=[args.input])
        if problems:
            raise InputError(problems)
        write_output("OUTPUT", args.output, corrected(args.input))
        shutil.copystat(args.input, args.output)  # so that what is made of it is not made again
    except (InputError, UnicodeDecodeError) as error:
        print(f"commas_below: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
