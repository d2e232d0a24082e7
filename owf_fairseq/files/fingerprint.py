"""What a model's numbers mean: a fingerprint of the dictionaries and of how text is cut, to notice when they change.

A dictionary of the same size fits a checkpoint's weights, and then every word stands for another.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SEGMENTATION_RECORD = "segmentation.json"
"""What `owf prepare` writes beside the data: how text becomes pieces."""

_SEGMENTATION_FILES = ("model", "source_model", "target_model", "codes")
"""Entries of the record that name files."""

KEY = "data_fingerprint"
"""Where it stands in a training's record, and in the ``extra_state`` of a checkpoint."""

Fingerprint = dict[str, str]
"""A sum for each file, by its name."""


def fingerprint(data: str | os.PathLike[str]) -> Fingerprint:
    """Looks at a folder of binary data.

    Counts of a dictionary are left out: they mean nothing to a model.

    Args:
        data: as fairseq's ``data``: of shards with ``:`` between, the first counts.

    Returns:
        Sums of the dictionaries and of the segmentation; of what cannot be read there is none.
    """
    folder = Path(os.fspath(data).split(os.pathsep)[0])
    found: Fingerprint = {}
    for path in sorted(folder.glob("dict.*.txt")):
        try:
            symbols = [line.rpartition(b" ")[0] for line in path.read_bytes().splitlines()]
        except OSError:
            continue
        found[path.name] = _sum(b"\n".join(symbols))
    try:
        record = json.loads((folder / SEGMENTATION_RECORD).read_text(encoding="utf-8"))
        files = [(folder / record[key]).read_bytes() for key in _SEGMENTATION_FILES if key in record]
        lowercase = [b"lowercase"] if record.get("lowercase") else []
        found[SEGMENTATION_RECORD] = _sum(b"\0".join([str(record["type"]).encode(), *files, *lowercase]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return found


def changed_files(before: object, now: Mapping[str, str]) -> list[str]:
    """The files that both have a sum of, and not the same.

    Args:
        before: as it was read from a file: anything but a fingerprint tells nothing.
        now: of the data at hand.
    """
    if not isinstance(before, Mapping):
        return []
    return [name for name, value in before.items() if name in now and now[name] != value]


def known_data(state: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint that is made of another one keeps of its ``extra_state``: nothing, or the fingerprint."""
    sums = (state.get("extra_state") or {}).get(KEY)
    return {KEY: sums} if sums else {}


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
