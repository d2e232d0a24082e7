#!/usr/bin/env python3
"""Joins the binary data of all pairs of languages in one folder, as translation_multi_simple_epoch reads them.

Files are linked, where the disk can, so that they take no room. Shards stay shards.

example:
  python scripts/multilingual/join.py runs/multilingual/pairs runs/multilingual/data
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from owf_fairseq.errors import InputError
from owf_fairseq.files.folders import output_folder

COMMAND = "scripts/multilingual/join.py"


def joined(pairs: Path) -> dict[str, Path]:
    """What each file of the joined folder is: a file of the last pair that has it; all have the same dictionaries."""
    files = (file for pair in sorted(pairs.iterdir()) if pair.is_dir() for file in sorted(pair.rglob("*")))
    return {
        str(file.relative_to(pairs / file.relative_to(pairs).parts[0])): file
        for file in files
        if file.is_file() and not file.name.startswith(".") and not file.relative_to(pairs).parts[0].startswith(".")
    }


def join(pairs: Path, output: Path) -> int:
    """Makes the folder; returns how many files it has. One that has these very files is left alone.

    Raises:
        InputError: there is nothing to join, or the folder holds something else.
    """
    if not pairs.is_dir() or not joined(pairs):
        raise InputError(f"{pairs} has no data of pairs: run scripts/multilingual/preprocess.sh from its start")
    files = joined(pairs)
    if all((output / name).exists() and (output / name).samefile(file) for name, file in files.items()):
        return len(files)
    with output_folder(output, COMMAND) as folder:
        for name, file in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file, folder / name)
            except OSError:
                shutil.copy2(file, folder / name)
    return len(files)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, metavar="PAIRS", help="a folder with those of `owf prepare`, one a pair")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="the folder to make")
    args = parser.parse_args(argv)
    try:
        print(f"{join(args.pairs, args.output)} files -> {args.output}")
    except InputError as error:
        print(f"join: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
