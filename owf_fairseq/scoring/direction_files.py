"""Which file is which in the folders of a multilingual evaluation: told by the parts of its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.errors import InputError

DIRECTIONS_LAYOUT = """\
Folders for --directions: of every system one with its hypotheses, one with the references, one with the sources
(COMET only); the references may lie in the system's folder. The parts of a file's name between dots say what it is:
  en-de.hyp                  hypotheses of the direction en-de (what else is in the name does not matter)
  en-de.ref  ref.en-de       its references                en-de.src  its source
  test.en-de.de              the same, by the language     test.en-de.en
  ref.de  devtest.de  de     references of every direction into de, as in FLORES; en.txt  the source out of en
Codes of languages have letters, or are as in zh_CN and zho_Hans."""

_CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z]+)?"
_DIRECTION = re.compile(rf"({_CODE})-({_CODE})")
_ROLES = ("ref", "src")


@dataclass(frozen=True)
class _File:
    """What a file's name says.

    Attributes:
        path: of the file.
        direction: ``en-de``, None if there is none in the name.
        words: the other parts of the name.
        role: ``ref`` or ``src`` if the name says so.
    """

    path: str
    direction: str | None
    words: frozenset[str]
    role: str | None


def _files(folder: str) -> list[_File]:
    """The files of a folder; those whose names begin with a dot are none.

    Raises:
        InputError: it is no folder.
    """
    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.is_file() and path.name[0] != ".")
    except OSError as error:
        raise InputError(f"{folder} can't be read as a folder: {error.strerror or error}") from error
    found = []
    for path in paths:
        parts = path.name.split(".")
        directions = [part for part in parts if _DIRECTION.fullmatch(part)]
        words = frozenset(part for part in parts if part not in directions)
        role = next((role for role in _ROLES if role in words), None)
        found.append(_File(str(path), directions[0] if directions else None, words, role))
    return found


def sides(direction: str) -> tuple[str, str]:
    """Source and target language."""
    source, _, target = direction.partition("-")
    return source, target


def _hypotheses(files: Iterable[_File]) -> dict[str, list[str]]:
    """The files of hypotheses by direction."""
    found: dict[str, list[str]] = {}
    for file in files:
        if file.direction is not None and file.role is None and sides(file.direction)[0] not in file.words:
            found.setdefault(file.direction, []).append(file.path)
    return found


def _side(files: Sequence[_File], direction: str, role: str, *, mixed: bool) -> list[str]:
    """The files of a direction's references or source.

    Args:
        files: of the folder.
        direction: ``en-de``.
        role: ``ref`` or ``src``.
        mixed: there are hypotheses in the folder as well, so that the name must say the role.
    """
    language, other = sides(direction)[:: 1 if role == "src" else -1]
    named = {"src": "ref", "ref": "src"}[role]
    of_direction = [
        file for file in files if file.direction == direction and file.role != named and other not in file.words
    ]
    by_language = [file for file in files if file.direction is None and language in file.words and file.role != named]
    for candidates in (
        [file for file in of_direction if file.role == role],
        [] if mixed else [file for file in of_direction if language in file.words],
        [] if mixed else of_direction,
        [file for file in by_language if file.role == role],
        by_language,
    ):
        if candidates:
            return [file.path for file in candidates]
    return []


def find_files(
    systems: Mapping[str, str], references: Sequence[str], source: str | None
) -> dict[str, tuple[dict[str, str], list[str], str | None]]:
    """Finds the files of all directions.

    Args:
        systems: the folder of each system, by its name.
        references: folders, each with one reference of every direction.
        source: folder of the sources.

    Returns:
        By direction: the systems' files, the references' and the source's.

    Raises:
        InputError: with every direction that lacks a file, or has several.
    """
    problems: list[str] = []

    def list_folder(folder: str) -> list[_File]:
        try:
            return _files(folder)
        except InputError as error:
            problems.extend(error.problems)
            return []

    listed = {
        folder: list_folder(folder)
        for folder in dict.fromkeys([*systems.values(), *references, source or ""])
        if folder
    }
    if problems:
        raise InputError(problems)
    hypotheses = {name: _hypotheses(listed[folder]) for name, folder in systems.items()}
    in_references = {
        file.direction
        for folder in references
        for file in listed[folder]
        if file.direction and (file.role == "ref" or folder not in systems.values())
    }
    directions = sorted({*in_references, *(direction for found in hypotheses.values() for direction in found)})
    if not directions:
        raise InputError(
            f"{', '.join(systems.values())}: no file's name has a direction in it, as `en-de.hyp` has; `owf evaluate "
            "--help` shows how they are named"
        )
    found: dict[str, tuple[dict[str, str], list[str], str | None]] = {}
    lacking: dict[str, list[str]] = {}

    def only(paths: Sequence[str], what: str, direction: str) -> str:
        if not paths:
            lacking.setdefault(what, []).append(direction)
        elif len(paths) > 1:
            problems.append(f"{direction}: {what} must have one file, but has {' and '.join(paths)}")
        return paths[0] if paths else ""

    for direction in directions:
        found[direction] = (
            {
                name: only(hypotheses[name].get(direction, []), f"the system {name} ({folder})", direction)
                for name, folder in systems.items()
            },
            [
                only(
                    _side(listed[folder], direction, "ref", mixed=folder in systems.values()),
                    f"the reference ({folder})",
                    direction,
                )
                for folder in references
            ],
            only(
                _side(listed[source], direction, "src", mixed=source in systems.values()),
                f"the source ({source})",
                direction,
            )
            if source
            else None,
        )
    problems += [
        f"{what} lacks {len(missing)} of {len(directions)} directions: {', '.join(missing)}"
        for what, missing in lacking.items()
    ]
    if problems:
        raise InputError(problems)
    return found
