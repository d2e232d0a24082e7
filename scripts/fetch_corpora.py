#!/usr/bin/env python3
"""Fetches training corpora through mtdata, joins them with `owf pairs`, and says how many pairs each has.

What breaks off is taken up where it was, also by a later call, and a dead address holds up only its own corpus. Flags
that are not below go to `owf pairs`. In raw/, corpora.json gets what was left out, and the pairs of each corpus, and
notes.txt what the tables of results are to say of that.

example:
  python scripts/fetch_corpora.py --corpora scripts/wmt22_en_de/corpora.tsv --langs eng-deu --run runs/wmt22_en_de \\
      --output runs/wmt22_en_de/raw/train.en runs/wmt22_en_de/raw/train.de --without ParaCrawl-paracrawl-9-eng-deu
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from owf_fairseq.data import corpora
from owf_fairseq.errors import InputError

Runner = Callable[[Sequence[str]], bool]
"""Runs a command; tells whether it succeeded."""


def run_command(command: Sequence[str]) -> bool:
    """Runs it as a process."""
    return subprocess.run(command).returncode == 0


def read_corpora(path: Path) -> list[corpora.Part]:
    """mtdata's names, and the pairs that are expected.

    Raises:
        InputError: the file can't be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"`--corpora` {path} can't be read: {error}") from error
    with io.StringIO(text, newline="") as file:
        return [corpora.Part(row["id"], int(row["pairs"] or 0) or None) for row in csv.DictReader(file, delimiter="\t")]


def fetch(args: argparse.Namespace, flags: Sequence[str], run: Runner = run_command) -> bool:
    """Fetches, joins, and reports; tells whether all went well.

    Raises:
        InputError: a flag names something that can't be used.
    """
    parts = read_corpora(args.corpora)
    languages = args.langs.split("-")
    if len(languages) != 2 or not all(languages):
        raise InputError(f"`--langs` must be two languages, such as eng-deu, but is '{args.langs}'")
    if args.jobs < 1:
        raise InputError(f"`--jobs` must be at least 1, but is {args.jobs}")
    names, left_out = corpora.choose_corpora([part.name for part in parts], args.without)
    failures = corpora.prefetch(names, Path(os.environ["MTDATA"]), args.jobs)
    for problem in corpora.complaints(failures):
        print(f"fetch_corpora: {problem}", file=sys.stderr)
    if failures:
        return False
    unpack, files = corpora.unpacking(args.run / "mtdata", "train", names, (languages[0], languages[1]), args.jobs)
    inputs = [word for pair in files for word in ("--input", *pair)]
    counts = args.run / "counts" / "train.json"
    join = ["owf", "pairs", *inputs, "--output", *map(str, args.output), "--json", str(counts), *flags]
    if not run(unpack) or not run(join):
        return False
    found = {part.name: part for part in corpora.read_counts(counts, [part for part in parts if part.name in names])}
    limits = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    limits.add_argument("--limit", type=int)
    report = corpora.describe([found.get(part.name, part) for part in parts], limits.parse_known_args(flags)[0].limit)
    print(report.as_text())
    corpora.record(args.run / "raw", report)
    return True


def main(argv: list[str] | None = None, run: Runner = run_command) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--corpora", required=True, type=Path, metavar="FILE", help="a table of mtdata's names and pairs"
    )
    parser.add_argument("--run", required=True, type=Path, metavar="DIR", help="the run's folder, for mtdata/")
    parser.add_argument("--langs", required=True, metavar="A-B", help="the languages, as mtdata names them: eng-deu")
    parser.add_argument(
        "--output",
        required=True,
        nargs=2,
        type=Path,
        metavar=("A", "B"),
        help="the two files to write",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="CORPUS",
        help="leave out a corpus, or all of a pattern such as 'Tilde-*'; may be repeated",
    )
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="files at a time (default: 4)")
    args, flags = parser.parse_known_args(argv)
    os.environ.setdefault("MTDATA", str(args.run / "mtdata-cache"))
    try:
        return 0 if fetch(args, flags, run) else 1
    except InputError as error:
        print("\n".join(f"fetch_corpora: {problem}" for problem in error.problems), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
