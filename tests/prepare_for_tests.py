"""A small corpus for ``owf prepare``, and what fairseq reads of the data that it makes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from owf_fairseq.files.lines import write_lines

WORDS = ["lamp", "door", "window", "opens", "closes", "the", "every", "slowly", "garden", "kitchen", "größer", "schön"]
# Each is white space for Python, and would cut a piece in two or move a line.
ODD = [
    "the\u2028lamp",
    "the\u00a0door",
    "the\u0085garden",
    "every\u3000window",
    "every\u202fdoor",
    "the\rlamp",
    "\u2581door",
    "the\x00door",
]
SIZE = 64
"""A vocabulary that fits these words."""


def sentences(seed: int, count: int) -> list[str]:
    """Lines of two to seven words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, 7))) for _ in range(count)]


def write_corpus(folder: Path, source: str = "en", target: str = "de", pairs: int = 120) -> dict[str, str]:
    """Write a small corpus, and return the prefixes of its splits."""
    for seed, (split, count) in enumerate({"train": pairs, "valid": 12, "test": 9}.items()):
        lines = sentences(seed, count)
        if split != "train":
            lines[: len(ODD)] = ODD
        write_lines(folder / f"{split}.{source}", lines)
        write_lines(folder / f"{split}.{target}", [line.upper() for line in reversed(lines)])
    return {split: str(folder / split) for split in ("train", "valid", "test")}


def read_binary(folder: Path, split: str, lang: str, langs: str = "en-de") -> list[str]:
    """What fairseq reads: each sentence as its symbols, with the end-of-sentence symbol."""
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(folder / f"dict.{lang}.txt"))
    dataset: Any = data_utils.load_indexed_dataset(str(folder / f"{split}.{langs}.{lang}"), dictionary)
    return [" ".join(dictionary[token] for token in dataset[i].tolist()) for i in range(len(dataset))]


def files_of(folder: Path) -> dict[str, bytes]:
    """All files in a folder, and what is in them."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
