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
from owf_fairseq.decoding.vocabulary_map import VOCABULARY_MAP, VocabularyMap
from owf_fairseq.errors import InputError
from owf_fairseq.files.json_object import is_plain_name, read_object, wrong_types
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
            record = read_object(folder / EXPORT_RECORD)
        except InputError as error:
            raise InputError(
                f"{folder} is not a folder that `owf export` made: its {EXPORT_RECORD} can't be read"
            ) from error
        if record.get("kind") != "export":
            raise InputError(f"{folder} is not a folder that `owf export` made: its {EXPORT_RECORD} is of another kind")
        wrong = wrong_types(record, _ENTRIES)
        wrong += [name for name in ("source", "target") if name not in wrong and not is_plain_name(record[name])]
        wrong += [name for name, kind in _ENTRIES.items() if kind is int and name not in wrong and record[name] < 1]
        if wrong:
            raise InputError(
                f"{folder}/{EXPORT_RECORD} is not complete ({', '.join(wrong)}): export the checkpoint again"
            )
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
        symbols = json.loads(path.read_text(encoding="utf-8"))  # CTranslate2 has read it before
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise InputError(f"{path} is no list of symbols: export the checkpoint again")
        return symbols[Dictionary().nspecial :]

    def shortlist(self) -> VocabularyMap | None:
        """Which symbols a translation may have; None if there is no shortlist.

        Raises:
            InputError: it can't be read.
        """
        path = self.folder / VOCABULARY_MAP
        return VocabularyMap.read(path) if path.is_file() else None

    def model(self) -> StoredModel:
        """Its arch and flags, without weights.

        Raises:
            InputError: they describe no model.
        """
        from owf_fairseq.checkpoints.stored_model import describe_state

        file = self.folder / FLAGS
        try:
            flags = read_object(file)
        except InputError as error:
            raise InputError(f"{problem}: export the checkpoint again" for problem in error.problems) from error
        if not isinstance(flags.get("model"), dict):
            raise InputError(f"{file} has no flags of a model (`model`): export the checkpoint again")
        return describe_state({"cfg": flags, "model": {}}, str(file))


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
