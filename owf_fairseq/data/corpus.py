"""The files of a corpus: their lines, what is wrong with them, and the chunks that are worked on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from owf_fairseq.data.chunks import Checked, Chunk, check_chunk
from owf_fairseq.errors import InputError
from owf_fairseq.files.line_index import LineIndex, index_lines
from owf_fairseq.files.lines import listed
from owf_fairseq.progress import Progress

_LARGE = 100_000_000
"""Bytes of a file that isn't read when the command will be refused anyway: a second's work."""


@dataclass(frozen=True)
class Corpus:
    """Parallel text whose files can be read.

    Attributes:
        prefixes: for each split, its files without their language.
        langs: source and target language.
        sides: for each split, its two files; a split with a fault is missing.
        chunks: of all splits, in order; a chunk's number is its place here.
    """

    prefixes: Mapping[str, str]
    langs: tuple[str, str]
    sides: Mapping[str, tuple[LineIndex, LineIndex]]
    chunks: tuple[Chunk, ...]

    def lines(self, split: str) -> int:
        """Lines of each side."""
        return self.sides[split][0].lines if split in self.sides else 0

    def of(self, split: str) -> list[Chunk]:
        """The chunks of a split."""
        return [chunk for chunk in self.chunks if chunk.split == split]

    def quotas(self, sample: int) -> dict[int, int]:
        """How many pairs of each training chunk are in a sample: all chunks give the same share."""
        chunks, total = self.of("train"), self.lines("train")
        sample = min(sample, total)
        starts = [chunk.start * sample // total for chunk in chunks] + [sample]
        return {chunk.number: starts[n + 1] - starts[n] for n, chunk in enumerate(chunks)}

    def problems(self, checked: Mapping[int, Checked]) -> list[str]:
        """Say what is wrong with the text.

        Args:
            checked: what is in the chunks; of a split, all of them.
        """
        return [
            f"--{split} {self.prefixes[split]}: {problem}"
            for split, sides in self.sides.items()
            for problem in _problems(
                split, sides, [checked[chunk.number] for chunk in self.of(split) if chunk.number in checked]
            )
        ]

    def problems_now(self, kind: str) -> list[str]:
        """Say what is wrong with the text of the splits that are soon read.

        Args:
            kind: of the segmentation.
        """
        small = {split: sides for split, sides in self.sides.items() if not any(_large(side.path) for side in sides)}
        found = {chunk.number: check_chunk(chunk, kind, 0, None) for chunk in self.chunks if chunk.split in small}
        return replace(self, sides=small).problems(found)


def read_corpus(
    prefixes: Mapping[str, str], langs: tuple[str, str], chunk: Callable[[str, int], int], problems: list[str]
) -> Corpus:
    """Count the lines of all files.

    Args:
        prefixes: for each split, the files without their language.
        langs: source and target language.
        chunk: says of a split and the number of its lines how many make a chunk.
        problems: gets those of the files; if there is one, large files aren't read any more.
    """
    sides = _index(prefixes, langs, problems)
    chunks: list[Chunk] = []
    for split, (source, target) in sides.items():
        step = chunk(split, source.lines)
        for start in range(0, source.lines, step):
            count = min(step, source.lines - start)
            places = (source.place(start), target.place(start))
            chunks.append(Chunk(len(chunks), split, langs, (source.path, target.path), start, count, places))
    return Corpus(prefixes, langs, sides, tuple(chunks))


def split_langs(langs: str, prefix: str) -> tuple[str, str]:
    """Split `source-target` where the training files are there: a language may hold a hyphen itself."""
    parts = langs.split("-")
    ways = [("-".join(parts[:i]), "-".join(parts[i:])) for i in range(1, len(parts))]
    ways = [way for way in ways if way[0] and way[1] and way[0] != way[1]]
    if not ways:
        raise InputError(f"`--langs` must be two different languages, as in en-de, but is {langs!r}")
    for way in ways:
        if all(Path(f"{prefix}.{lang}").is_file() for lang in way):
            return way
    looked = " or ".join(f"{prefix}.{source} and {prefix}.{target}" for source, target in ways)
    raise InputError(f"`--train` {prefix}: there must be {looked}")


def _index(
    prefixes: Mapping[str, str], langs: tuple[str, str], problems: list[str]
) -> dict[str, tuple[LineIndex, LineIndex]]:
    files = {split: [f"{prefix}.{lang}" for lang in langs] for split, prefix in prefixes.items()}
    found: dict[str, tuple[LineIndex, LineIndex]] = {}
    faults: dict[str, list[str]] = {}
    total = sum(_size(path) for paths in files.values() for path in paths)
    with Progress("MiB", total >> 20, label="counting lines") as progress:
        # small files first: what is wrong with them is soon found
        for split, paths in sorted(files.items(), key=lambda item: sum(map(_size, item[1]))):
            if (problems or any(faults.values())) and any(map(_large, paths)):
                continue
            sides = []
            faults[split] = []
            for path in paths:
                try:
                    sides.append(index_lines(path, lambda read: progress.advance(read >> 20)))
                except InputError as error:
                    faults[split] += error.problems
            if len(sides) == 2 and sides[0].lines != sides[1].lines:
                faults[split].append(
                    f"{paths[0]} has {sides[0].lines} lines, but {paths[1]} has {sides[1].lines}: line n of one must "
                    "be the translation of line n of the other"
                )
            if not faults[split]:
                found[split] = (sides[0], sides[1])
    for split, prefix in prefixes.items():
        problems += [f"--{split} {prefix}: {fault}" for fault in faults.get(split, [])]
    return {split: found[split] for split in prefixes if split in found}


def _problems(split: str, sides: tuple[LineIndex, LineIndex], found: list[Checked]) -> list[str]:
    problems = []
    for side, file in enumerate(sides):
        faults = [fault for part in found for fault in part.faults[side]]
        problems += listed(file.path, faults, sum(part.faulty[side] for part in found))
    if split != "train" and any(part.empty for part in found):
        where = [
            f"{file.path}, line {n}" for side, file in enumerate(sides) for part in found for n in part.blank[side]
        ]
        more = sum(sum(part.blanks) for part in found) - len(where[:5])
        named = "; ".join(where[:5]) + (f" and {more} more" if more else "")
        problems.append(f"empty sentences: {named}; remove them from both files")
    elif not problems and not any(part.kept for part in found):
        problems.append(f"no pair of sentences in {sides[0].path} and {sides[1].path}")
    return problems


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _large(path: str) -> bool:
    return _size(path) > _LARGE
