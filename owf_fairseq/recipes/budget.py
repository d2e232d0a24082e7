"""What the models of a table were made with, as a sentence under it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def budget(raw: Path, data: Path, dataset: str, updates: int, given: Sequence[str]) -> str:
    """The sentence.

    Args:
        raw: the folder of the text.
        data: of the binary data.
        dataset: whose configs were trained.
        updates: of a training, 0 for no limit.
        given: further words of the command line.
    """
    made = [*_training_pairs(raw), *_vocabulary(data)]
    made.append(f"{updates or 'no limit of'} updates of the training recipe of configs/{dataset}")
    return f"ours: {', '.join(made)}{', with ' if given else ''}{' '.join(given)}"


def _training_pairs(raw: Path) -> list[str]:
    """How many there are, if the text is there."""
    files = sorted(raw.glob("train.*"))
    return [f"{sum(map(_count_lines, files)) // 2} training pairs"] if files else []


def _count_lines(file: Path) -> int:
    with open(file, "rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def _vocabulary(data: Path) -> list[str]:
    """The rows of the embeddings: fairseq adds four symbols to a dictionary."""
    dictionaries = sorted(data.glob("dict.*.txt"))
    return [f"{4 + _count_lines(dictionaries[0])} symbols"] if dictionaries else []
