"""The lines that a teacher translates, file after file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from owf_fairseq.data.corpus import split_langs
from owf_fairseq.data.languages import short_code
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.decoding.text_files import Text
from owf_fairseq.errors import InputError, collect


@dataclass(frozen=True)
class SourceFile:
    """A file of lines to translate.

    Attributes:
        path: of it.
        reference: of the file with translations that are known, line by line; None for monolingual text.
        lines: of each.
    """

    path: str
    reference: str | None
    lines: int

    @classmethod
    def check(cls, path: str, reference: str | None = None) -> SourceFile:
        """Reads the files once, to know that they can be translated.

        Raises:
            InputError: one can't be read, has a line that is not UTF-8, or they don't have the same number of lines.
        """
        problems: list[str] = []
        sides = [path] if reference is None else [path, reference]
        found = [collect(problems, partial(Text.open, side)) for side in sides]
        for side, text in zip(sides, found, strict=True):
            if text is not None:
                text.file.close()
                if text.lines is None:
                    problems.append(f"{side} is a pipe, but is read more than once: name a file")
        counts = [text.lines for text in found if text is not None]
        if not problems and len(set(counts)) > 1:
            problems.append(
                f"{path} has {counts[0]} lines, but {reference} has {counts[1]}: line n of one must be the "
                "translation of line n of the other"
            )
        if problems:
            raise InputError(problems)
        return cls(path, reference, counts[0] or 0)

    def buffers(self, size: int, skip: int) -> Iterator[tuple[list[str], list[str | None]]]:
        """Sources and references, so many lines at a time.

        Args:
            size: of a buffer.
            skip: lines that are left out before.
        """
        texts = [Text.open(path) for path in (self.path, self.reference) if path is not None]
        try:
            sides = [text.buffers(size, skip) for text in texts]
            for buffers in zip(*sides, strict=True):
                yield buffers[0], list(buffers[1]) if len(buffers) == 2 else [None] * len(buffers[0])
        finally:
            for text in texts:
                text.file.close()


def languages_of(langs: str, train: str | None) -> tuple[str, str]:
    """Source and target.

    Args:
        langs: with a hyphen between.
        train: the prefix of the training files, which tells where a language holds a hyphen itself.

    Raises:
        InputError: they are no two languages, or there are no such files.
    """
    if train is not None:
        return split_langs(langs, train)
    source, _, target = langs.partition("-")
    if not source or not target or source == target:
        raise InputError(f"`--langs` must be two different languages, as in en-de, but is {langs!r}")
    return source, target


def check_languages(langs: tuple[str, str], segmentation: Segmentation, teacher: str) -> list[str]:
    """Says whether a teacher translates from one language to the other, whatever their codes are spelt like."""
    own = segmentation.source, segmentation.target
    if [short_code(lang) for lang in own] == [short_code(lang) for lang in langs]:
        return []
    return [f"`--langs` {'-'.join(langs)}, but {teacher} translates from {own[0]} to {own[1]}"]


def find_sources(train: str | None, monolingual: Sequence[str], langs: tuple[str, str]) -> list[SourceFile]:
    """All files to translate.

    Raises:
        InputError: with every problem of the files, or there is nothing to translate.
    """
    problems: list[str] = []
    pairs: list[tuple[str, str | None]] = [] if train is None else [(f"{train}.{langs[0]}", f"{train}.{langs[1]}")]
    pairs += [(os.fspath(path), None) for path in monolingual]
    found = [collect(problems, partial(SourceFile.check, *pair)) for pair in pairs]
    if not pairs:
        problems.append("name text to translate, with `--train PREFIX` or `--monolingual FILE`")
    elif not problems and not sum(one.lines for one in found if one is not None):
        problems.append(f"there is nothing to translate in {' and '.join(path for path, _ in pairs)}")
    if problems:
        raise InputError(problems)
    return [one for one in found if one is not None]
