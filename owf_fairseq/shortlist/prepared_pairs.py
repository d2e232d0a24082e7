"""Pairs of sentences of binary data, read where they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from owf_fairseq.data.recorded import RecordedData, languages
from owf_fairseq.data.shards import shard_name
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike
from owf_fairseq.shortlist.sentences import Numbers


@dataclass(frozen=True)
class PreparedPairs:
    """Parallel text, in one folder of binary data or in several.

    Attributes:
        folders: of several, shards of the training data, the first has the dictionaries and the validation data.
    """

    folders: Sequence[RecordedData]

    @classmethod
    def find(cls, paths: Sequence[PathLike], langs: str | None = None) -> PreparedPairs:
        """Looks for the data.

        Args:
            paths: of folders; one that `owf prepare --shards` made stands for its shards.
            langs: source and target, if not in the order in which the files are named.

        Raises:
            InputError: a folder has no training data, or not of these languages, or there are no dictionaries.
        """
        problems, folders = [], []
        for folder in shard_folders(paths):
            named = languages(folder)
            pair = None if named is None else _ordered(named, langs)
            if named is None:
                problems.append(
                    f"{folder} holds no binary data (train.SOURCE-TARGET.SOURCE.idx): `owf prepare` makes it"
                )
            elif pair is None:
                problems.append(f"`--langs` {langs}: {folder} has {'-'.join(named)}")
            else:
                folders.append(RecordedData(folder, *pair))
                if any(folders[-1].indexed("train", lang) is None for lang in pair):
                    problems.append(f"{folder} has no training data of {'-'.join(pair)}")
        if problems:
            raise InputError(problems)
        folders[0].dictionaries()  # raises if there are none
        return cls(folders)

    @property
    def langs(self) -> tuple[str, str]:
        """Source and target."""
        return self.folders[0].source, self.folders[0].target

    def number(self, split: str) -> int:
        """How many pairs a split has."""
        return sum(len(source) for source, _ in self._sides(split))

    def some(self, split: str, number: int, start: int, stop: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Pairs of a split, without end-of-sentence symbols.

        Args:
            split: train or valid.
            number: of pairs that are taken evenly from all; at most all.
            start, stop: of these.
        """
        sides = self._sides(split)
        ends = np.cumsum([0, *(len(source) for source, _ in sides)])
        for n in range(start, stop):
            line = n * int(ends[-1]) // number
            folder = int(np.searchsorted(ends, line, "right")) - 1
            source, target = (side[line - int(ends[folder])].numpy()[:-1] for side in sides[folder])
            yield source, target

    def _sides(self, split: str) -> list[tuple[Any, Any]]:
        """fairseq's data sets of the two languages, for each folder that has the split."""
        found = [tuple(folder.indexed(split, lang) for lang in self.langs) for folder in self.folders]
        return [(source, target) for source, target in found if source is not None and target is not None]


def shard_folders(paths: Sequence[PathLike]) -> list[Path]:
    """The folders themselves, or, of one that `owf prepare --shards` made, its shards."""
    folders: list[Path] = []
    for path in map(Path, paths):
        shards = sorted(path.glob("shard-*")) if os.path.isdir(path / shard_name(0, 2)) else []
        folders += shards or [path]
    return folders


def _ordered(named: tuple[str, str], langs: str | None) -> tuple[str, str] | None:
    """The languages as they were asked for; None if they are others."""
    ways = {"-".join(way): way for way in (named, named[::-1])}
    return named if langs is None else ways.get(langs)
