"""Files that a command writes: what forbids it, told before the work, and the writing itself."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike, atomic_path


def check_output_file(
    flag: str,
    path: PathLike | None,
    overwrite: bool,
    *,
    kind: str | None = None,
    inputs: Sequence[PathLike | None] = (),
) -> list[str]:
    """Says what forbids a command to write a file.

    A file that is not there, a device and a pipe may be written; a file that is there with ``--overwrite``, or if it is
    JSON that the same command wrote.

    Args:
        flag: names the file on the command line.
        path: of the file; None if the flag was not given.
        overwrite: whether ``--overwrite`` was given.
        kind: of the JSON that the command writes, as it says itself under ``kind``.
        inputs: files that the command reads, which it must never replace.

    Returns:
        The problems, to be reported with the command's others.
    """
    if path is None:
        return []
    name = os.fspath(path)
    if os.path.isdir(path):
        return [f"`{flag}` {name} is a folder: name a file"]
    if not os.path.lexists(path):
        folder = unwritable_folder(path)
        return [f"`{flag}` {name} can't be written: {folder} is not a folder that can be written to"] if folder else []
    if not os.path.isfile(path):
        return []
    problems = replaced_inputs(flag, path, inputs)
    if problems:
        return problems
    folder = unwritable_folder(path)
    if folder:
        return [f"`{flag}` {name} can't be written: {folder} is not a folder that can be written to"]
    if overwrite or (kind is not None and _kind_of(Path(path)) == kind):
        return []
    return [f"`{flag}` {name} exists: name another file, or replace it with `--overwrite`"]


def unwritable_folder(path: PathLike) -> Path | None:
    """The folder that a path, or the folders that it still needs, would be made in; None if that can be done."""
    folder = next(parent for parent in Path(os.path.abspath(path)).parents if os.path.lexists(parent))
    try:
        # tried, because a superuser's permissions say nothing of a file system that can't be written
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError:
        return folder


def replaced_inputs(flag: str, output: PathLike, inputs: Sequence[PathLike | None]) -> list[str]:
    """Says which files that a command reads it would replace: by their real paths, whatever links lead there.

    Args:
        flag: names the output on the command line.
        output: a file, or a folder that is replaced as a whole.
        inputs: files that the command reads.
    """
    name = os.fspath(output)
    problems = []
    for other in inputs:
        if other is None or not os.path.exists(other) or not os.path.exists(output):
            continue
        if os.path.samefile(other, output):
            kind = "folder" if os.path.isdir(output) else "file"
            problems.append(f"`{flag}` {name} is the input {os.fspath(other)}: name another {kind}")
        elif Path(os.path.realpath(output)) in Path(os.path.realpath(other)).parents:
            problems.append(f"`{flag}` {name} holds the input {os.fspath(other)}: name another folder")
    return problems[:1]


def _kind_of(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8")).get("kind")
    except (OSError, ValueError, AttributeError):
        return None


@contextmanager
def writing(flag: str, path: PathLike) -> Iterator[None]:
    """Raises an ``InputError`` where the file can't be written in this block."""
    try:
        yield
    except OSError as error:
        raise InputError(f"`{flag}` {os.fspath(path)} can't be written: {error.strerror or error}") from error


@contextmanager
def output_file(flag: str, path: PathLike) -> Iterator[Path]:
    """Yield a path to write to: a temporary one that becomes the file when all is written, or a device or pipe itself.

    Raises:
        InputError: it can't be written.
    """
    with writing(flag, path):
        if os.path.exists(path) and not os.path.isfile(path):
            yield Path(path)
        else:
            with atomic_path(path) as temporary:
                yield temporary


def write_output(flag: str, path: PathLike, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by LF; see ``output_file``."""
    with output_file(flag, path) as place, open(place, "wb") as file:
        for line in lines:
            file.write(line.encode("utf-8") + b"\n")
