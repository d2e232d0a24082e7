"""The binary data that a checkpoint was trained on, found without flags: languages, dictionaries and segmentation."""

from __future__ import annotations

import json
import os
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owf_fairseq.data.segmentation import KINDS, NoSegmentation, Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.fingerprint import KEY, SEGMENTATION_RECORD, changed_files, fingerprint
from owf_fairseq.files.json_object import is_plain_name
from owf_fairseq.files.lines import PathLike

if TYPE_CHECKING:
    from fairseq.data import Dictionary

NO_SEGMENTATION = "none"


@dataclass(frozen=True)
class RecordedData:
    """What translating needs of a folder of binary data.

    Attributes:
        folder: with ``dict.SOURCE.txt`` and ``dict.TARGET.txt``.
        source, target: languages.
        fingerprint: of the data that the model was trained on, as its checkpoint has it; it may have none.
    """

    folder: Path
    source: str
    target: str
    fingerprint: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def dictionaries(self) -> tuple[Dictionary, Dictionary]:
        """fairseq's dictionaries of the source and the target language.

        Raises:
            InputError: fairseq cannot read one.
        """
        from fairseq.data import Dictionary

        loaded, problems = [], []
        for path in self._dictionary_files():
            try:
                loaded.append(Dictionary.load(str(path)))
            except Exception as error:  # fairseq raises one that says no more for bytes that are not UTF-8
                problems.append(f"{path} is not a fairseq dictionary: {error}")
        if problems:
            raise InputError(problems)
        return loaded[0], loaded[1]

    def joined_dictionaries(self) -> tuple[Dictionary, Dictionary]:
        """Both dictionaries, as one object if they are equal: fairseq's test for shared embeddings.

        Raises:
            InputError: fairseq cannot read one.
        """
        source, target = self.dictionaries()
        return (source, source) if source == target else (source, target)

    def sentences(self, number: int) -> list[list[str]]:
        """The first source sentences of the validation data (else of the test or the training data), as pieces.

        Args:
            number: of sentences, at most.

        Raises:
            InputError: there are dictionaries, but no text.
        """
        source, _ = self.dictionaries()
        for split in ("valid", "test", "train"):
            found = self.indexed(split, self.source)
            if found is not None:
                some = [found[n].tolist() for n in range(min(number, len(found)))]
                return [[source[n] for n in sentence if n != source.eos()] for sentence in some]
        raise InputError(
            f"{self.folder} has no sentences to verify the model on (it has no valid.{self.source}-{self.target}."
            f"{self.source}.idx): name a text with `--verify`"
        )

    def sizes(self, split: str, lang: str) -> Sequence[int] | None:
        """The tokens of each sentence of a split, the end of the sentence included; None if there is no such split.

        Raises:
            InputError: the data are damaged.
        """
        found = self.indexed(split, lang)
        return None if found is None else list(found.sizes)  # a copy: the array ends with fairseq's data set

    def indexed(self, split: str, lang: str) -> Any:
        """fairseq's data set of a split and a language; None if there is none."""
        from fairseq.data import indexed_dataset

        for pair in (f"{self.source}-{self.target}", f"{self.target}-{self.source}"):
            prefix = str(self.folder / f"{split}.{pair}.{lang}")
            if not all(os.path.isfile(f"{prefix}.{kind}") for kind in ("idx", "bin")):
                continue
            try:
                found = indexed_dataset.make_dataset(prefix, indexed_dataset.infer_dataset_impl(prefix))
                len(found)
            except (AssertionError, AttributeError, OSError, TypeError, ValueError) as error:
                raise InputError(f"{prefix}.idx is damaged ({error}): make the data again") from error
            return found
        return None

    def segmentation(self, other: str | None = None) -> Segmentation:
        """How text becomes pieces.

        Args:
            other: a folder with another record, or ``none`` for text that is in pieces already; by default what was
                recorded beside the data.

        Raises:
            InputError: nothing was recorded, or it can't be read.
        """
        if other == NO_SEGMENTATION:
            return NoSegmentation(self.source, self.target)
        if other is None and not os.path.exists(self.folder / SEGMENTATION_RECORD):
            raise InputError(
                f"{self.folder} doesn't say how its text was cut into pieces (it has no {SEGMENTATION_RECORD}, "
                "which `owf prepare` writes): `--segmentation none` takes text that is in pieces already, "
                "`--segmentation DIR` the record of another folder"
            )
        if other is None and SEGMENTATION_RECORD in changed_files(self.fingerprint, fingerprint(self.folder)):
            raise InputError(
                f"{self.folder} cuts text into other pieces now than when the model was trained: {SEGMENTATION_RECORD} "
                "or the file that it names has changed. Put the old one back, or name its folder with "
                "`--segmentation DIR`"
            )
        return Segmentation.load(self.folder if other is None else other)

    def files(self, other: str | None = None) -> list[Path]:
        """The files that ``dictionaries`` and ``segmentation`` read, as far as they are there.

        Args:
            other: see ``segmentation``.
        """
        place = self.folder if other is None else Path(other)
        try:
            record = json.loads((place / SEGMENTATION_RECORD).read_text(encoding="utf-8"))
            named = [place / record[entry] for entry in KINDS[record["type"]].FILES]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            named = []
        return [path for path in (*self._dictionary_files(), place / SEGMENTATION_RECORD, *named) if path.is_file()]

    def _dictionary_files(self) -> list[Path]:
        return [self.folder / f"dict.{lang}.txt" for lang in (self.source, self.target)]


def find_data(state: Mapping[str, Any], checkpoint: PathLike, folder: PathLike | None = None) -> RecordedData:
    """Finds the data of a checkpoint.

    It is looked for where the training found it; if that was a relative path, above the checkpoint first, and then in
    this folder, which may have other data of that name. A run's folder may have moved as a whole: so the end of the
    path is looked for above the checkpoint, too, and at last beside it.

    Args:
        state: of the checkpoint.
        checkpoint: its path.
        folder: the folder to take (``--data``).

    Raises:
        InputError: there is no such folder, or it has not the dictionaries of the checkpoint's languages.
    """
    task = _task_flags(state)
    source, target = (task.get(f"{side}_lang") for side in ("source", "target"))
    for lang in (source, target):
        if lang is not None and not (isinstance(lang, str) and is_plain_name(lang)):
            raise InputError(
                f"{checkpoint} was not used: its language {lang!r} is no language, but could name any file"
            )
    recorded = task.get("data")
    sums = (state.get("extra_state") or {}).get(KEY) or {}
    looked, others = [], []
    for place in [Path(folder)] if folder is not None else _places(recorded, Path(checkpoint)):
        if str(place) in looked:
            continue
        looked.append(str(place))
        langs = (source, target) if source and target else languages(place)
        if langs is None:
            continue
        found = RecordedData(place, *langs, fingerprint=sums)
        # isfile is False for a folder that may not be read
        names = [path.name for path in found._dictionary_files() if os.path.isfile(path)]
        if len(names) < 2:
            continue
        different = [name for name in changed_files(sums, fingerprint(place) if sums else {}) if name in names]
        if not different:
            return found
        others.append(f"{', '.join(different)} in {place}")
    if others:
        raise InputError(
            f"{checkpoint} was trained with other symbols than those of {'; '.join(others)}, and would write other "
            "words: name the data that it was trained on with `--data`"
        )
    wanted = f"dict.{source or 'SOURCE'}.txt and dict.{target or 'TARGET'}.txt"
    if folder is not None:
        raise InputError(f"`--data` {folder} must hold {wanted}, the dictionaries of {checkpoint}")
    said = f"trained on {recorded!r}, " if recorded else ""
    closed = next((place for place in looked if _is_closed(place)), None)
    said += f"{closed} may not be read, " if closed else ""
    shown = ", ".join(looked[:4]) + (", ..." if len(looked) > 4 else "")
    raise InputError(
        f"{checkpoint} was {said}and its data ({wanted}) isn't in any of {shown}: name the folder with `--data`"
    )


def _task_flags(state: Mapping[str, Any]) -> dict[str, Any]:
    flags = state["cfg"].get("task") if state.get("cfg") else state.get("args")
    return dict(flags) if isinstance(flags, Mapping) else dict(vars(flags or Namespace()))


def _places(recorded: object, checkpoint: Path) -> Iterator[Path]:
    parents = Path(os.path.abspath(checkpoint)).parents
    if isinstance(recorded, str) and recorded and "\0" not in recorded:
        if os.pathsep in recorded:  # the name of a folder may have one, too
            yield Path(recorded)
        # shards of the data are separated by colons, and each has all dictionaries
        first = Path(recorded.split(os.pathsep)[0])
        # what the run's folder and the data have in common is the end of the path
        tails = [Path(*first.parts[n:]) for n in range(1 if first.is_absolute() else 0, len(first.parts))]
        if not first.is_absolute():
            yield from (parent / first for parent in parents)
        yield first
        yield from (parent / tail for tail in tails for parent in parents)
    yield parents[0]


def _is_closed(folder: str) -> bool:
    """Whether there is such a folder, or a file above it, that this user may not read."""
    try:
        os.listdir(folder)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def languages(folder: Path) -> tuple[str, str] | None:
    """The languages of a folder of binary data, from the names of its files, as fairseq finds them."""
    names: list[str] = []
    with suppress(OSError):  # there is none, or it may not be listed
        names = sorted(os.listdir(folder))
    for name in names:
        found = re.fullmatch(r"(?:train|valid|test)\.([^.]+)-([^.]+)\.\1\.idx", name)
        if found:
            return found[1], found[2]
    return None
