"""A folder that `owf export` made: what is in it beside CTranslate2's own files, and how it is read."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owf_fairseq.data.recorded import RecordedData
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike

if TYPE_CHECKING:
    from owf_fairseq.checkpoints.stored_model import StoredModel

EXPORT_RECORD = "export.json"
FLAGS = "training_flags.json"
WEIGHTS = "model.bin"

QUANTIZATIONS = (
    "float32",
    "float16",
    "bfloat16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
)
"""CTranslate2's names. Its int16 is left out: it divides by a matrix' largest weight, 0 where an FFN is dropped."""


@dataclass(frozen=True)
class ExportedModel:
    """What a folder says of its model.

    Attributes:
        folder: its path.
        record: what it says itself, in ``export.json``.
    """

    folder: Path
    record: Mapping[str, Any]

    @classmethod
    def read(cls, path: PathLike) -> ExportedModel:
        """Reads the record.

        Raises:
            InputError: `owf export` did not make this folder, or something of it is missing.
        """
        folder = Path(path)
        try:
            record = json.loads((folder / EXPORT_RECORD).read_text(encoding="utf-8"))
            complete = record["kind"] == "export" and all(
                type(record.get(name)) is kind for name, kind in _ENTRIES.items()
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{folder} is no folder that `owf export` made: its {EXPORT_RECORD} can't be read"
            ) from error
        if not complete:
            raise InputError(f"{folder}/{EXPORT_RECORD} is not complete: export the checkpoint again")
        missing = [name for name in (WEIGHTS, "config.json", FLAGS) if not (folder / name).is_file()]
        if not (folder / "shared_vocabulary.json").is_file():
            both = ("source_vocabulary.json", "target_vocabulary.json")
            missing += [name for name in both if not (folder / name).is_file()]
        if missing:
            raise InputError(f"{folder} lacks {' and '.join(missing)}: export the checkpoint again")
        return cls(folder, record)

    @property
    def data(self) -> RecordedData:
        """The languages, and how text becomes pieces."""
        return RecordedData(self.folder, self.record["source"], self.record["target"])

    @property
    def max_source_length(self) -> int:
        """Pieces that a source may have, without the end-of-sentence symbol."""
        return int(self.record["max_source_length"])

    @property
    def max_target_length(self) -> int:
        """Pieces that a translation can have, likewise."""
        return int(self.record["max_target_length"])

    @property
    def target_vocabulary_size(self) -> int:
        """Symbols, the special ones included."""
        return int(self.record["target_vocabulary_size"])

    @cached_property
    def source_symbols(self) -> list[str]:
        """The pieces of the source vocabulary, special symbols aside."""
        from fairseq.data import Dictionary

        shared = self.folder / "shared_vocabulary.json"
        path = shared if shared.is_file() else self.folder / "source_vocabulary.json"
        symbols: list[str] = json.loads(path.read_text(encoding="utf-8"))  # CTranslate2 has read it before
        return symbols[Dictionary().nspecial :]

    def model(self) -> StoredModel:
        """Its arch and flags, without weights.

        Raises:
            InputError: they describe no model.
        """
        from owf_fairseq.checkpoints.stored_model import describe_state

        try:
            flags = json.loads((self.folder / FLAGS).read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{self.folder / FLAGS} is damaged ({error}): export the checkpoint again") from error
        return describe_state({"cfg": flags, "model": {}}, str(self.folder / FLAGS))


_ENTRIES = {
    "source": str,
    "target": str,
    "max_source_length": int,
    "max_target_length": int,
    "target_vocabulary_size": int,
    "quantization": str,
    "parameters": int,
}
"""Of the record: what is read again."""


def check_installed() -> None:
    """Says what to do where CTranslate2 is not installed.

    Raises:
        InputError: it isn't.
    """
    if importlib.util.find_spec("ctranslate2") is None:
        raise InputError("CTranslate2 is not installed: pip install '.[export]'")
