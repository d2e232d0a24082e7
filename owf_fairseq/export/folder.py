"""What `owf export` writes into its folder beside CTranslate2's own files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from owf_fairseq.data.recorded import NO_SEGMENTATION, RecordedData
from owf_fairseq.data.segmentation import KINDS, SEGMENTATION_RECORD, read_segmentation_record
from owf_fairseq.data.train_segmentation import SEGMENTATION_FILES
from owf_fairseq.files.lines import write_lines


def copy_segmentation(data: RecordedData, other: str | None, folder: Path) -> None:
    """Copies how text becomes pieces: the record and the files that it names.

    Args:
        data: of the checkpoint.
        other: see ``RecordedData.segmentation``.
        folder: to copy to.
    """
    if other == NO_SEGMENTATION:
        write_json(folder / SEGMENTATION_RECORD, {"type": "none", "source": data.source, "target": data.target})
        return
    place = data.folder if other is None else Path(other)
    record = read_segmentation_record(place)
    for entry in KINDS[record["type"]].FILES:
        name = SEGMENTATION_FILES[entry]  # and not what the record has, which may be anywhere
        shutil.copyfile(place / record[entry], folder / name)
        record[entry] = name
    write_json(folder / SEGMENTATION_RECORD, record)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON for people too; what JSON has no word for is written as text."""
    write_lines(path, json.dumps(value, indent=1, ensure_ascii=False, default=as_plain).split("\n"))


def as_plain(value: Any) -> Any:
    """What JSON can hold of a flag's value."""
    if hasattr(value, "__dict__"):  # a Namespace
        return vars(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)
