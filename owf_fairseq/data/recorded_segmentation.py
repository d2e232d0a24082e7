"""Segmentations recorded beside data, and taken over from there for other data."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from owf_fairseq.data.segmentation import KINDS, SEGMENTATION_RECORD, Segmentation, read_segmentation_record
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike, write_lines


def write_segmentation_record(folder: Path, record: dict[str, Any]) -> None:
    """Write what `read_segmentation_record` reads."""
    write_lines(folder / SEGMENTATION_RECORD, json.dumps(record, indent=1, ensure_ascii=False).split("\n"))


@dataclass(frozen=True)
class Recorded:
    """The segmentation and the dictionary of a folder that `owf prepare` made.

    Attributes:
        folder: the folder; of several shards, the first.
        record: what is in its `segmentation.json`.
        dictionary: the file; both languages have the same.
    """

    folder: Path
    record: dict[str, Any]
    dictionary: Path

    @staticmethod
    def find(folder: PathLike, shard: str) -> Recorded:
        """Look into a folder, or else into its first shard.

        Args:
            folder: what the user gave.
            shard: the name of a first shard.

        Raises:
            InputError: `owf prepare` didn't make it, or not all is there.
        """
        place = Path(folder)
        if not (place / SEGMENTATION_RECORD).exists() and (place / shard / SEGMENTATION_RECORD).exists():
            place = place / shard
        try:
            Segmentation.load(place)
        except InputError as error:
            raise InputError([f"`--like` {folder}: {problem}" for problem in error.problems]) from error
        dictionaries = sorted(place.glob("dict.*.txt"))
        if not dictionaries:
            raise InputError(f"`--like` {folder}: there is no dictionary, dict.LANG.txt, in {place}")
        if len({path.read_bytes() for path in dictionaries}) > 1:
            raise InputError(f"`--like` {folder}: its languages have dictionaries that differ, but must have the same")
        record = read_segmentation_record(place)
        return Recorded(place, record, dictionaries[0])

    @property
    def kind(self) -> str:
        """The kind of the segmentation, a key of `segmentation.KINDS`."""
        kind: str = self.record["type"]
        return kind

    def problems(self, source: str, target: str) -> list[str]:
        """Why the segmentation can't be that of other languages."""
        own = [self.record["source"], self.record["target"]]
        if self.kind != "separate-sentencepiece" or sorted(own) == sorted([source, target]):
            return []
        return [
            f"`--like` {self.folder}: it has a vocabulary for {own[0]} and one for {own[1]}, and `--langs` is "
            f"{source}-{target}: make data whose languages share one, without `--separate-vocabularies`"
        ]

    def files(self) -> list[Path]:
        """All that is copied."""
        names = [self.record[name] for name in KINDS[self.kind].FILES]
        return [self.folder / SEGMENTATION_RECORD, *(self.folder / name for name in names), self.dictionary]

    def copy(self, folder: Path, source: str, target: str) -> Segmentation:
        """Write the segmentation into a folder, recorded for other languages."""
        _, *models, _ = self.files()
        for path in models:
            shutil.copyfile(path, folder / path.name)
        record = {**self.record, "source": source, "target": target}
        if self.kind == "separate-sentencepiece" and source != self.record["source"]:  # the other way: see `problems`
            record["source_model"], record["target_model"] = record["target_model"], record["source_model"]
        write_segmentation_record(folder, record)
        return Segmentation.load(folder)
