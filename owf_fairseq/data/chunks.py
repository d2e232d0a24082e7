"""What is done with a corpus, a few ten thousand pairs at a time: each function here runs in a process of its own.

They hold a line at a time. What they find is returned, small; what they make is written to a folder.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from owf_fairseq.data.segmentation import KINDS, Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import MAX_REPORTED, decode_line, raw_lines, stream_lines, write_parallel

SEGMENTATION_FOLDER = "segmentation"
DICTIONARY = "dict.txt"


@dataclass(frozen=True)
class Chunk:
    """Consecutive pairs of a split.

    Attributes:
        number: of the chunk, over all splits.
        split: train, valid or test.
        langs: source and target language.
        paths: the two files.
        start: first line, from 0.
        count: lines.
        places: where each file has the first line (`LineIndex.place`).
    """

    number: int
    split: str
    langs: tuple[str, str]
    paths: tuple[str, str]
    start: int
    count: int
    places: tuple[tuple[int, int], tuple[int, int]]

    def raw(self) -> Iterator[tuple[bytes, bytes]]:
        """The pairs as they are in the files."""
        sides = [raw_lines(path, *place, self.count) for path, place in zip(self.paths, self.places, strict=True)]
        yield from zip(*sides, strict=True)

    def file(self, folder: Path, lang: str, what: str = "pieces") -> Path:
        """A file of the chunk: `sample` or `pieces`, which is the prefix of fairseq's two files, too."""
        return folder / "chunks" / f"{self.number:06d}.{lang}.{what}"

    def remove(self, folder: Path) -> None:
        """Remove all files of the chunk."""
        for lang in self.langs:
            for what in ("sample", "pieces", "pieces.bin", "pieces.idx"):
                self.file(folder, lang, what).unlink(missing_ok=True)


@dataclass
class Checked:
    """What is in a chunk; of two values, the first is the source's.

    Attributes:
        kept: pairs whose sides both hold text.
        empty: pairs that do not.
        blank: the first lines (from 1) of each side that hold nothing.
        blanks: how many there are.
        faults: a sentence for each of the first lines that are not UTF-8.
        faulty: how many there are.
    """

    kept: int = 0
    empty: int = 0
    blank: list[list[int]] = field(default_factory=lambda: [[], []])
    blanks: list[int] = field(default_factory=lambda: [0, 0])
    faults: list[list[str]] = field(default_factory=lambda: [[], []])
    faulty: list[int] = field(default_factory=lambda: [0, 0])


@dataclass
class Encoded:
    """Pieces of a chunk's two sides, without end-of-sentence symbols."""

    tokens: list[int]


@dataclass
class Binarized:
    """Pieces of a chunk's two sides that are not in the dictionary."""

    unknown: list[int]


def check_chunk(chunk: Chunk, kind: str, quota: int, folder: Path | None) -> Checked:
    """Find what is wrong with the text, and draw some of it.

    Args:
        chunk: the pairs.
        kind: of the segmentation (a key of `segmentation.KINDS`), which says how text is cleaned.
        quota: lines to draw from, with a seed that depends on the chunk's place alone; those that turn out to be empty
            are not replaced.
        folder: gets the cleaned text of the pairs that were drawn, in their order; None if there is no quota.
    """
    found = Checked()
    drawn = set(random.Random(chunk.start).sample(range(chunk.count), min(quota, chunk.count)))
    sample = (texts for n, texts in _kept(chunk, kind, found) if n in drawn)
    if folder is not None and quota:
        write_parallel([chunk.file(folder, lang, "sample") for lang in chunk.langs], sample)
    else:
        collections.deque(sample, maxlen=0)
    return found


def _kept(chunk: Chunk, kind: str, found: Checked) -> Iterator[tuple[int, list[str]]]:
    """The pairs that both hold text, cleaned, with their places in the chunk."""
    clean = KINDS[kind].clean
    for n, raw in enumerate(chunk.raw()):
        texts = [_decoded(chunk, n, side, raw[side], found) for side in (0, 1)]
        texts = [text if text is None else clean(text) for text in texts]
        for side in (0, 1):
            if texts[side] == "":
                found.blanks[side] += 1
                found.blank[side] += [chunk.start + n + 1] if len(found.blank[side]) < MAX_REPORTED else []
        if "" in texts:
            found.empty += 1
        else:
            found.kept += 1
            yield n, [text or "" for text in texts]


def _decoded(chunk: Chunk, n: int, side: int, raw: bytes, found: Checked) -> str | None:
    try:
        return decode_line(raw, chunk.paths[side], chunk.start + n + 1)
    except InputError as error:
        found.faulty[side] += 1
        found.faults[side] += error.problems if len(found.faults[side]) < MAX_REPORTED else []
        return None


def encode(chunk: Chunk, folder: Path) -> Encoded:
    """Cut the pairs that both hold text into pieces, and write them.

    Args:
        chunk: pairs that were checked.
        folder: with the segmentation.
    """
    # Loaded for each chunk, in some milliseconds: BPE remembers all words that it has seen.
    model = Segmentation.load(folder / SEGMENTATION_FOLDER)
    counted = Encoded([0, 0])

    def pieces() -> Iterator[list[str]]:
        for n, raw in enumerate(chunk.raw(), chunk.start + 1):
            texts = [model.clean(decode_line(line, path, n)) for line, path in zip(raw, chunk.paths, strict=True)]
            if all(texts):
                encoded = [model.encode(text, lang) for text, lang in zip(texts, chunk.langs, strict=True)]
                for side in (0, 1):
                    counted.tokens[side] += encoded[side].count(" ") + 1
                yield encoded

    write_parallel([chunk.file(folder, lang) for lang in chunk.langs], pieces())
    return counted


def binarize(chunk: Chunk, folder: Path) -> Binarized:
    """Write the pieces as fairseq's binary data: the bytes that fairseq-preprocess writes, some times faster.

    Args:
        chunk: pairs that were encoded.
        folder: with the dictionary.
    """
    import torch
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import data_file_path, index_file_path, make_builder

    dictionary = Dictionary.load(str(folder / DICTIONARY))
    known, unknown, end = dictionary.indices, dictionary.unk(), dictionary.eos()
    counts = []
    for lang in chunk.langs:
        pieces = chunk.file(folder, lang)
        builder = make_builder(data_file_path(str(pieces)), impl="mmap", vocab_size=len(dictionary))
        counts.append(0)
        for line in stream_lines(pieces):
            ids = [known.get(piece, unknown) for piece in line.split()]
            counts[-1] += ids.count(unknown)
            builder.add_item(torch.tensor([*ids, end]))
        builder.finalize(index_file_path(str(pieces)))
    return Binarized(counts)
