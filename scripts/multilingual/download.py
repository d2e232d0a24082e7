#!/usr/bin/env python3
"""Fetches or takes the text of all pairs of some languages, and FLORES-200 to validate and to test.

In the folder of the run it writes raw/train.A-B.{A,B} for each pair, raw/valid.LANG, test/test.LANG, of which line n
says the same in all languages, and langs.txt, pairs.txt and directions.txt, which the next scripts read. It fetches
through mtdata; the names of the corpora are in corpora.tsv. What breaks off is taken up where it was. Training pairs
with an empty side, or with a side of more than 250 words, are left out.

example:
  python scripts/multilingual/download.py --run runs/multilingual --langs de en fr --limit 5000000
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

from owf_fairseq.data.corpora import (
    Part,
    choose_corpora,
    complaints,
    describe,
    prefetch,
    read_counts,
    record,
    unpacking,
)
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.lines import write_lines

LANGS = "de en es fr it ja ko pt sw zh".split()
CORPORA = Path(__file__).with_name("corpora.tsv")
CLEANING = "--drop-empty --max-words 250".split()
HELD_OUT = {"valid": ("dev", 997), "test": ("test", 1012)}
"""What mtdata calls the two, and their lines."""

Pair = tuple[str, str]
Runner = Callable[[Sequence[str]], bool]
"""Runs a command; tells whether it succeeded."""

Fetcher = Callable[[Sequence[str], Path, int], dict[str, str]]
"""Fetches corpora into mtdata's cache, several at a time; returns those that can't be had, and why."""


@dataclass(frozen=True)
class Request:
    """What is wanted.

    Attributes:
        run: the folder of the run.
        langs: in the order of their tags.
        local: a folder with the text; None to fetch it.
        limit: training pairs of each pair of languages, at most.
        without: training corpora to leave out, or patterns of them.
    """

    run: Path
    langs: list[str]
    local: Path | None = None
    limit: int | None = None
    without: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[Pair]:
        """Each two languages once."""
        return list(combinations(self.langs, 2))

    def problems(self) -> list[str]:
        """What can't be used of it."""
        problems = []
        if len(self.langs) < 2:
            problems.append(f"`--langs` must name two languages at least, but is {' '.join(self.langs)}")
        for lang in self.langs:
            if not re.fullmatch("[A-Za-z_]+", lang):
                problems.append(f"`--langs`: fairseq needs languages of letters and _, but one is {lang}")
            elif self.local is None and not any(lang in pair for _, *pair, _ in corpora()):
                problems.append(f"`--langs`: corpora.tsv has no text in {lang}; with `--local DIR`, you give the text")
        if self.limit is not None and self.limit < 1:
            problems.append(f"`--limit` must be at least 1, but is {self.limit}")
        if self.local is not None and self.without:
            problems.append("`--without` is for corpora that are fetched, but with `--local` none is")
        if self.local is None and not problems:
            chosen = collect(problems, lambda: choose_corpora(self.names(self.pairs), self.without))
            kept = chosen[0] if chosen is not None else []
            problems += [
                f"`--without` leaves no corpus of {'-'.join(pair)}"
                for pair in self.pairs
                if chosen is not None and not {*self.names([pair])} & {*kept}
            ]
        if self.local is not None and not problems:
            for pair in self.pairs:
                if local_text(self.local, pair) is None:
                    problems.append(
                        f"`--local` {self.local} has neither train.{'-'.join(pair)}.{pair[0]} nor train.{pair[0]}"
                    )
        return problems

    def names(self, pairs: Iterable[Pair]) -> list[str]:
        """mtdata's names of the training corpora of some pairs of languages."""
        return [name for pair in pairs for split, *of, name in corpora() if split == "train" and tuple(of) == pair]

    def kept(self, pairs: Iterable[Pair]) -> list[str]:
        """The same, but for those that are left out."""
        left_out = choose_corpora(self.names(self.pairs), self.without)[1]
        return [name for name in self.names(pairs) if name not in left_out]

    def held_out(self) -> list[tuple[str, str, str, str]]:
        """Split, two languages and mtdata's name of the corpora to validate and to test."""
        langs = {*self.langs}
        return [
            (split, source, target, name)
            for split, source, target, name in corpora()
            if split in HELD_OUT and {source, target} <= langs | {"en"} and {source, target} & langs - {"en"}
        ]

    def counts(self, pair: Pair) -> Path:
        """The file with the numbers of training pairs of each corpus of a pair of languages."""
        return self.run / "counts" / f"train.{'-'.join(pair)}.json"

    def joining(self, name: str, inputs: Iterable[Pair], pair: Pair, rules: Sequence[str]) -> list[str]:
        """The command that makes one text of several."""
        given = [word for files in inputs for word in ("--input", *files)]
        outputs = [str(self.run / f"{name}.{lang}") for lang in pair]
        return ["owf", "pairs", *given, "--output", *outputs, "--overwrite", *rules]

    @property
    def rules(self) -> list[str]:
        """Which training pairs are kept."""
        return [*CLEANING, *(["--limit", str(self.limit)] if self.limit is not None else [])]

    def steps(self) -> tuple[list[list[list[str]]], list[list[list[str]]]]:
        """Commands in their order: first those of the held-out text, then those of each pair of languages."""
        return self._from_network() if self.local is None else self._from_folder(self.local)

    def _from_network(self) -> tuple[list[list[list[str]]], list[list[list[str]]]]:
        held_out = []
        for split, source, target, name in self.held_out():
            kind, lines = HELD_OUT[split]
            get, inputs = unpacking(self.run / "mtdata" / f"{source}-{target}", kind, [name])
            rules = ["--lines", str(lines)]
            held_out.append([get, self.joining(_place(split), inputs, (source, target), rules)])
        train = []
        for pair in self.pairs:
            get, inputs = unpacking(self.run / "mtdata" / "-".join(pair), "train", self.kept([pair]))
            rules = [*self.rules, "--json", str(self.counts(pair))]
            train.append([get, self.joining(f"raw/train.{'-'.join(pair)}", inputs, pair, rules)])
        return held_out, train

    def parts(self) -> list[Part]:
        """The training corpora as they were found; how many pairs to expect is not known."""
        found = {}
        for pair in self.pairs:
            kept = [Part(name) for name in self.kept([pair])]
            found.update({part.name: part for part in read_counts(self.counts(pair), kept)})
        return [found.get(name, Part(name)) for name in self.names(self.pairs)]

    def _from_folder(self, local: Path) -> tuple[list[list[list[str]]], list[list[list[str]]]]:
        first, *others = self.langs
        held_out = [
            [self.joining(_place(split), [_files(local / split, (first, other))], (first, other), [])]
            for split in HELD_OUT
            for other in others
        ]
        train = [
            [
                self.joining(
                    f"raw/train.{'-'.join(pair)}",
                    [_files(local_text(local, pair) or local / "train", pair)],
                    pair,
                    self.rules,
                )
            ]
            for pair in self.pairs
        ]
        return held_out, train


@cache
def corpora() -> list[list[str]]:
    """Split, two languages and mtdata's name of each corpus."""
    with open(CORPORA, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))[1:]


def local_text(local: Path, pair: Pair) -> Path | None:
    """Where a folder has the training text of two languages: one of theirs, or one that says the same in all."""
    names = ["train." + "-".join(pair), "train." + "-".join(reversed(pair)), "train"]
    found = (
        local / name for name in names if any(os.path.exists(f"{local / name}.{pair[0]}{end}") for end in ("", ".gz"))
    )
    return next(found, None)


def _place(split: str) -> str:
    """The test set has a folder of its own, which `owf evaluate --directions` reads."""
    return "test/test" if split == "test" else f"raw/{split}"


def _files(prefix: Path, pair: Pair) -> Pair:
    first, second = (str(file) if os.path.exists(file := f"{prefix}.{lang}") else f"{file}.gz" for lang in pair)
    return first, second


def run_command(command: Sequence[str]) -> bool:
    """Runs it as a process."""
    return subprocess.run(command).returncode == 0


def _fetch(names: Sequence[str], jobs: int, fetch: Fetcher, needed: bool) -> set[str]:
    """Fetches corpora; says and returns which can't be had."""
    failures = fetch(names, Path(os.environ["MTDATA"]), jobs)
    for problem in complaints(failures, needed):
        print(f"download: {problem}", file=sys.stderr)
    return set(failures)


def download(request: Request, jobs: int, run: Runner = run_command, fetch: Fetcher = prefetch) -> bool:
    """Writes all the text; tells whether it is complete. A pair that can't be had doesn't hold up the others.

    Raises:
        InputError: with every problem of what is wanted.
    """
    problems = request.problems()
    if jobs < 1:
        problems.append(f"`--jobs` must be at least 1, but is {jobs}")
    if problems:
        raise InputError(problems)
    held_out, train = request.steps()
    # the small ones first: what is missing shows at once
    if request.local is None and _fetch([name for *_, name in request.held_out()], jobs, fetch, needed=True):
        return False
    if not all(all(map(run, step)) for step in held_out):
        return False
    missing = set() if request.local is not None else _fetch(request.kept(request.pairs), jobs, fetch, needed=False)
    possible = [step for pair, step in zip(request.pairs, train, strict=True) if not missing & {*request.kept([pair])}]
    with ThreadPoolExecutor(jobs) as pool:
        complete = all(list(pool.map(lambda step: all(map(run, step)), possible))) and not missing
    if complete and request.local is None:
        report = describe(request.parts(), request.limit)
        print(report.as_text())
        record(request.run / "raw", report)
    if complete:
        write_lines(request.run / "langs.txt", [",".join(request.langs)])
        write_lines(request.run / "pairs.txt", map("-".join, request.pairs))
        write_lines(request.run / "directions.txt", [",".join(map("-".join, permutations(request.langs, 2)))])
    return complete


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, type=Path, metavar="DIR", help="the folder of the run")
    parser.add_argument(
        "--langs", nargs="+", default=LANGS, metavar="LANG", help=f"the languages (default: {' '.join(LANGS)})"
    )
    parser.add_argument(
        "--local",
        type=Path,
        metavar="DIR",
        help="take train.A-B.{A,B} for each pair of languages or, where they all say the same, train.{A,B,...}, and "
        "{valid,test}.{A,B,...}, or .gz, from a folder, and fetch nothing",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="CORPUS",
        help="leave out a training corpus, or all of a pattern such as 'OPUS-ccmatrix-*'; may be repeated",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="keep the first N training pairs of each two languages")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="pairs of languages at a time (default: 4)")
    args = parser.parse_args(argv)
    langs = sorted({lang for word in args.langs for lang in word.split()})
    os.environ.setdefault("MTDATA", str(args.run / "mtdata-cache"))
    try:
        complete = download(Request(args.run, langs, args.local, args.limit, tuple(args.without)), args.jobs)
    except InputError as error:
        print("\n".join(f"download: {problem}" for problem in error.problems), file=sys.stderr)
        return 2
    except FileNotFoundError as error:
        print(
            f"download: {error.filename} is not on the PATH: pip install -c constraints.txt '.[dev]'", file=sys.stderr
        )
        return 1
    if not complete:
        print("download: some text is not complete (see above); started again, it goes on with that", file=sys.stderr)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
