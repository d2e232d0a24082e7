"""The texts of an evaluation: files read whole, checked against each other, and named."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from owf_fairseq.baselines import Baselines, by_order, by_size
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import read_lines
from owf_fairseq.files.visible import shown
from owf_fairseq.model_names import arch_of_name, split_name


@dataclass(frozen=True)
class TextFile:
    """A text, one segment a line.

    Attributes:
        file: its path, as given.
        lines: without line ends.
        sha256: of the file's bytes.
    """

    file: str
    lines: list[str]
    sha256: str

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {"file": self.file, "lines": len(self.lines), "sha256": self.sha256}


@dataclass(frozen=True)
class TestSet:
    """Hypotheses, and what they are scored against; all have the same number of lines, line n translates line n.

    Attributes:
        hypotheses: by the system's name.
        references: one or more; none for metrics that need none.
        source: None where no metric needs it.
        language: of the target side, None if unknown.
    """

    __test__ = False  # for pytest: this is no test

    hypotheses: dict[str, TextFile]
    references: list[TextFile]
    source: TextFile | None = None
    language: str | None = None

    @property
    def segments(self) -> int:
        """The number of lines."""
        return len((self.references or [*self.hypotheses.values()])[0].lines)


def read_text(path: str) -> TextFile:
    """Reads a file once, so that a pipe will do as well.

    Raises:
        InputError: it can't be read, is not UTF-8, or is empty.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror or error}") from error
    stream = io.BytesIO(data)
    stream.name = path  # what an error about its bytes will name
    lines = [shown(line) for line in read_lines(stream)]
    if not lines:
        raise InputError(f"{path} is empty: it must have one segment a line")
    return TextFile(path, lines, hashlib.sha256(data).hexdigest())


def read_test_set(
    systems: dict[str, str], references: Sequence[str], source: str | None = None, language: str | None = None
) -> TestSet:
    """Reads all files of a test set.

    Args:
        systems: the file of each system's hypotheses, by the system's name.
        references, source: files.
        language: of the target side.

    Raises:
        InputError: with every problem of every file: one can't be read, is empty, or has another number of lines than
            the first reference.
    """
    problems: list[str] = []
    read: dict[str, TextFile] = {}
    for path in dict.fromkeys([*references, *([source] if source else []), *systems.values()]):
        try:
            read[path] = read_text(path)
        except InputError as error:
            problems += error.problems
    measure = next((read[path] for path in references if path in read), next(iter(read.values()), None))
    for text in read.values():
        if measure is not None and len(text.lines) != len(measure.lines):
            problems.append(
                f"{text.file} has {len(text.lines):,} lines, but {measure.file} has {len(measure.lines):,}: line n "
                "must belong to line n"
            )
    if problems:
        raise InputError(problems)
    return TestSet(
        {name: read[path] for name, path in systems.items()},
        [read[path] for path in references],
        read[source] if source else None,
        language,
    )


def name_systems(
    given: Sequence[str], baselines: Sequence[str] = (), kind: str = "file", sizes: bool = False
) -> tuple[dict[str, str], Baselines]:
    """The path of every system by its name, and what each is compared with.

    Args:
        given: each a path, of a file or a folder, or ``NAME=PATH``.
        baselines: the names or the paths of some of them; a single one may be another one.
        kind: of what the paths name.
        sizes: without baselines, compare each with the individual model of its own size, as the names say it.

    Returns:
        The paths by name, the first baseline before all others; and the baselines, none if nothing asks for them.

    Raises:
        InputError: there is no such baseline, or two systems have one name.
    """
    systems = [split_name(text) for text in given]
    names = _names(systems)
    problems, wanted = [], []
    for baseline in baselines:
        name, path = split_name(baseline)
        found = [
            number
            for number, (_, other) in enumerate(systems)
            if names[number] == baseline or (not name and os.path.realpath(other) == os.path.realpath(path))
        ]
        if found:
            wanted.append(found[-1])
        elif len(baselines) > 1 or (not name and not os.path.exists(path)):
            neither = "is none" if len(baselines) > 1 else f"is neither a {kind} nor one"
            problems.append(f"`--baseline` {baseline} {neither} of the systems: {', '.join(dict.fromkeys(names))}")
        else:
            systems, wanted = [(name, path), *systems], [0]
            names = _names(systems)
    for name in dict.fromkeys(names):
        paths = [path for (_, path), other in zip(systems, names, strict=True) if other == name]
        if len(paths) > 1:
            problems.append(f"{' and '.join(paths)} have one name, '{name}': give another, as in `NAME={paths[-1]}`")
    if problems:
        raise InputError(problems)
    found_paths = {name: path for name, (_, path) in zip(names, systems, strict=True)}
    if not wanted:
        return found_paths, by_size({name: arch_of_name(name)[0] for name in found_paths}) if sizes else {}
    first = names[min(wanted)]
    found_paths = {first: found_paths[first], **found_paths}
    return found_paths, by_order([*found_paths], [names[number] for number in wanted])


def unnamed_systems(given: Sequence[str]) -> dict[str, str]:
    """The paths by what was given, for one who only wants to know what is wrong with the files."""
    return {text: split_name(text)[1] for text in given}


def _names(systems: Sequence[tuple[str, str]]) -> list[str]:
    """Every system's name: the given one; else its file's, its folder's or the path: the first that no other has."""
    paths = [Path(os.path.abspath(path)) for _, path in systems]
    files = [name or path.stem for (name, _), path in zip(systems, paths, strict=True)]
    folders = ["" if name else path.parent.name for (name, _), path in zip(systems, paths, strict=True)]
    return [
        name or (file if files.count(file) == 1 else folder if [*files, *folders].count(folder) == 1 else "") or path
        for (name, path), file, folder in zip(systems, files, folders, strict=True)
    ]
