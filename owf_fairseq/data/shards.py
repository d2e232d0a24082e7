"""Chunks put together to the folders that fairseq trains on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.data.chunks import DICTIONARY, SEGMENTATION_FOLDER, Chunk
from owf_fairseq.files.lines import atomic_path

ENCODED = "encoded"
"""The folder, in each shard, of the text as pieces."""
CHUNK = 50_000
"""Pairs that are read, cut into pieces and binarized at a time."""
_CHUNKS_A_SHARD = 16
"""At least, so that the shards of a small corpus have about the same size, too."""


@dataclass(frozen=True)
class Shard:
    """A part of the training data, in a folder of its own with all that fairseq needs.

    Attributes:
        name: of the folder, inside the output; the only shard is the output itself, `.`.
        chunks: what is in it, in order; the first shard has those of valid and test, too.
    """

    name: str
    chunks: tuple[Chunk, ...]

    @property
    def train(self) -> list[Chunk]:
        """The chunks of training data."""
        return [chunk for chunk in self.chunks if chunk.split == "train"]

    def folder(self, work: Path) -> Path:
        """Where it is made."""
        return work / "shards" / ("whole" if self.name == "." else self.name)


def shard_name(number: int, shards: int) -> str:
    """The name of a shard's folder."""
    return "." if shards == 1 else f"shard-{number:0{max(2, len(str(shards - 1)))}d}"


def chunk_lines(split: str, lines: int, shards: int) -> int:
    """How many pairs of a split make a chunk."""
    if split != "train" or shards == 1:
        return CHUNK
    return min(CHUNK, max(1, lines // (shards * _CHUNKS_A_SHARD)))


def busy_workers(lines: int) -> int:
    """How many processes a corpus keeps busy, so that starting them is worth their time."""
    return -(-lines // CHUNK)


def deal(chunks: Sequence[Chunk], shards: int) -> list[Shard]:
    """Give each shard its chunks: those of the training data in turn, those of the other splits to the first.

    The shards get the same number of training pairs, up to a chunk (and the pairs that were dropped). A corpus is often
    several corpora one after the other; because the chunks are dealt in turn, each shard gets its part of each of them.
    fairseq reads valid and test from the first shard alone.
    """
    training = [chunk for chunk in chunks if chunk.split == "train"]
    held_out = [chunk for chunk in chunks if chunk.split != "train"]
    return [
        Shard(shard_name(n, shards), tuple(training[n::shards] + (held_out if n == 0 else []))) for n in range(shards)
    ]


def make_shard(shard: Shard, work: Path) -> None:
    """Put the chunks of a shard together, if it hasn't been done, and remove them.

    The memory that it needs, about 60 bytes a pair, grows with the shard: fairseq writes its index from a list.

    Args:
        shard: whose chunks are binarized.
        work: has the chunks, the segmentation and the dictionary, and gets the folder: binary data, dictionaries,
            segmentation, and the text as pieces.
    """
    langs = shard.chunks[0].langs
    if not shard.folder(work).exists():
        with atomic_path(shard.folder(work)) as folder:
            shutil.copytree(work / SEGMENTATION_FOLDER, folder)
            for lang in langs:
                shutil.copyfile(work / DICTIONARY, folder / f"dict.{lang}.txt")
            (folder / ENCODED).mkdir()
            for split in dict.fromkeys(chunk.split for chunk in shard.chunks):
                for lang in langs:
                    parts = [chunk.file(work, lang) for chunk in shard.chunks if chunk.split == split]
                    _concatenate(parts, folder / ENCODED / f"{split}.{lang}")
                    _merge([str(part) for part in parts], str(folder / f"{split}.{'-'.join(langs)}.{lang}"))
    for chunk in shard.chunks:
        chunk.remove(work)


def _concatenate(parts: Sequence[Path], path: Path) -> None:
    with open(path, "wb") as whole:
        for part in parts:
            with open(part, "rb") as file:
                shutil.copyfileobj(file, whole, 1 << 20)


def _merge(parts: Sequence[str], prefix: str) -> None:
    """Make one binary data set of several."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset, data_file_path, index_file_path

    _concatenate([Path(data_file_path(part)) for part in parts], Path(data_file_path(prefix)))
    sizes: list[int] = []
    for part in parts:
        index = MMapIndexedDataset.Index(index_file_path(part))
        # as Python's own integers: of the small ones there is one each
        sizes += index.sizes.tolist()
    with MMapIndexedDataset.Index.writer(index_file_path(prefix), index.dtype) as file:
        file.write(sizes)
