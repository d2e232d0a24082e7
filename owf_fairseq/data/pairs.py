"""Parallel text copied as a stream: every line checked, line n of one file with line n of the other."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import IO, Any

from owf_fairseq.errors import InputError, too_small
from owf_fairseq.files.job import Job, OutputFile
from owf_fairseq.files.lines import PathLike, decode_line, unreadable, without_ends
from owf_fairseq.files.outputs import output_file, write_output
from owf_fairseq.files.visible import MARK, is_blank
from owf_fairseq.progress import Progress

FilePair = tuple[PathLike, PathLike]

_GZIP = b"\x1f\x8b"
_REPORT = 20_000
"""Pairs between two looks at the progress."""

COUNTS_KIND = "owf pairs"
"""Marks the JSON of ``--json``."""


@dataclass(frozen=True)
class Rules:
    """Which pairs are copied.

    Attributes:
        limit: at most so many; the rest is not read, unless `lines` is given.
        lines: so many pairs must be there before any is left out.
        drop_empty: leave out pairs with a side that shows nothing, as `owf prepare` does.
        max_words: leave out pairs with a side of more words, with white space between.
    """

    limit: int | None = None
    lines: int | None = None
    drop_empty: bool = False
    max_words: int | None = None

    def problems(self) -> list[str]:
        """Numbers that can't be."""
        numbers = {"--limit": self.limit, "--lines": self.lines, "--max-words": self.max_words}
        return [problem for each in numbers.items() for problem in too_small(*each)]

    def too_long(self, line: str) -> bool:
        """Whether a line has more words than are allowed."""
        # N + 1 words have N spaces between them: most lines are too short to be worth a split
        return self.max_words is not None and len(line) > 2 * self.max_words and len(line.split()) > self.max_words


@dataclass
class Copied:
    """What `copy_pairs` did: pairs that it read, wrote, and left out because a side was empty or too long.

    Attributes:
        corpora: the same of each corpus that it looked at, in their order.
    """

    read: int = 0
    written: int = 0
    empty: int = 0
    long: int = 0
    corpora: list[Copied] = field(default_factory=list, compare=False)

    def as_json(self, inputs: Sequence[FilePair]) -> str:
        """With the files of each corpus; one that the limit spared has no pairs."""
        unread = [Copied()] * (len(inputs) - len(self.corpora))
        corpora = [
            {"source": os.fspath(source), "target": os.fspath(target), **part._counts()}
            for (source, target), part in zip(inputs, [*self.corpora, *unread], strict=True)
        ]
        return json.dumps({"kind": COUNTS_KIND, **self._counts(), "corpora": corpora}, indent=1)

    def _counts(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "corpora"}


def copy_pairs(
    inputs: Sequence[FilePair],
    outputs: FilePair,
    rules: Rules = Rules(),
    overwrite: bool = False,
    counts: PathLike | None = None,
) -> Copied | None:
    """Copy parallel text, of one corpus or of several after each other.

    It takes the same memory for any number of lines. Files may be gzipped, whatever their names. Only LF separates
    lines; a CR before it, and a byte order mark at the start of a file or line, are dropped. The outputs appear when
    all is written, or not at all.

    Args:
        inputs: for each corpus its two files.
        outputs: the two files to write, as plain text.
        rules: which pairs are copied.
        overwrite: replace outputs that exist.
        counts: a file that gets what is returned, as JSON.

    Returns:
        What was done; None if it was done before, with the same rules and files.

    Raises:
        InputError: a file can't be read or written, a line is not UTF-8, gzipped data is damaged, or two files don't
            have the same number of lines: it names the file and the line.
    """
    names = {f"--{name.replace('_', '-')}": value for name, value in vars(rules).items()}
    written = [*(OutputFile("--output", path) for path in outputs), OutputFile("--json", counts, COUNTS_KIND)]
    job = Job("owf pairs", names, {"--input": [path for pair in inputs for path in pair]}, written, overwrite=overwrite)
    if job.is_done():
        return None
    problems = rules.problems()
    given = [path for pair in inputs for path in pair]
    problems += [f"`--input` {os.fspath(path)} is not a file" for path in given if not os.path.isfile(path)]
    problems += job.problems()
    if problems:
        raise InputError(problems)
    copied = Copied()
    with ExitStack() as stack:
        paths = [stack.enter_context(output_file("--output", path)) for path in outputs]
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        for source, target in _kept(inputs, rules, copied):
            files[0].write(source.encode() + b"\n")
            files[1].write(target.encode() + b"\n")
        texts = " and ".join(os.fspath(path) for path in given)
        if rules.lines is not None and copied.read != rules.lines:
            raise InputError(f"{texts} have {copied.read} pairs, but must have {rules.lines}: they are not complete")
        if not copied.written:
            raise InputError(f"no pair of sentences in {texts}")
        if counts is not None:
            write_output("--json", counts, copied.as_json(inputs).split("\n"))
    job.note()
    return copied


def _kept(inputs: Sequence[FilePair], rules: Rules, copied: Copied) -> Iterator[tuple[str, str]]:
    for pair in inputs:
        part = Copied()
        copied.corpora.append(part)
        for source, target in read_pairs(pair):
            copied.read += 1
            part.read += 1
            if rules.drop_empty and (is_blank(source) or is_blank(target)):
                copied.empty += 1
                part.empty += 1
            elif rules.too_long(source) or rules.too_long(target):
                copied.long += 1
                part.long += 1
            elif copied.written != rules.limit:
                copied.written += 1
                part.written += 1
                yield source, target
                if copied.written == rules.limit and rules.lines is None:
                    return


def read_pairs(pair: FilePair) -> Iterator[tuple[str, str]]:
    """Yield pairs of lines, one at a time, and show progress.

    Raises:
        InputError: see `copy_pairs`.
    """
    names = [os.fspath(path) for path in pair]
    with ExitStack() as stack:
        try:
            raw = [stack.enter_context(open(name, "rb")) for name in names]
        except OSError as error:
            raise unreadable(error.filename, error) from error
        size = sum(os.fstat(file.fileno()).st_size for file in raw)
        sides = [_lines(name, file) for name, file in zip(names, raw, strict=True)]
        progress = stack.enter_context(Progress("MB", round(size / 1e6), label=os.path.basename(names[0])))
        numbers = [0, 0]
        for source, target in zip_longest(*sides):
            numbers[0] += source is not None
            numbers[1] += target is not None
            if source is not None and target is not None:
                yield source, target
            if numbers[0] % _REPORT == 0:
                progress.advance(round(sum(file.tell() for file in raw) / 1e6) - progress.done)
    if numbers[0] != numbers[1]:
        raise InputError(
            f"{names[0]} has {numbers[0]} lines, but {names[1]} has {numbers[1]} (one of them ends before line "
            f"{min(numbers) + 1} of the other): line n of one must be the translation of line n of the other"
        )


def _lines(name: str, raw: IO[bytes]) -> Iterator[str]:
    number = 0
    try:
        zipped = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        file = gzip.GzipFile(fileobj=raw) if zipped else raw
        for number, line in enumerate(without_ends(file, at_start=True), 1):
            yield decode_line(line, name, number).removeprefix(MARK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}, after line {number}: the gzipped data is damaged or cut off ({error})") from error
    except OSError as error:
        raise unreadable(name, error) from error
