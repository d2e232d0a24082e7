"""Text files read and written line by line, such that line n stays line n.

Python's own readers end a line at a lone carriage return (universal newlines), and `str.splitlines` at U+2028, U+0085
and others as well. Either moves every translation after it by one line, so nothing here uses them: only LF separates
lines.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from owf_fairseq.errors import InputError

PathLike = str | os.PathLike[str]

BOM = b"\xef\xbb\xbf"
"""The byte order mark, which some programs put before the first line."""
MAX_REPORTED = 10
"""Faulty lines of one file that are named."""


def read_lines(
    source: PathLike | BinaryIO, errors: str = "strict", warn: Callable[[str], None] | None = None
) -> list[str]:
    """Read all lines of a UTF-8 file or binary stream.

    A CR before the LF and a byte order mark at the start are dropped; the last line needs no LF.

    Args:
        source: a path, or a stream of bytes (for example `sys.stdin.buffer`).
        errors: what to do with bytes that are not UTF-8: `"strict"` refuses them, `"replace"` puts U+FFFD there,
            `"blank"` makes the line empty.
        warn: is told of each line that was made empty.

    Raises:
        InputError: the file can't be read, or lines are not UTF-8: it names the file and the lines.
    """
    return list(stream_lines(source, errors, warn))


def stream_lines(
    source: PathLike | BinaryIO, errors: str = "strict", warn: Callable[[str], None] | None = None
) -> Iterator[str]:
    """Read what `read_lines` reads, one line at a time, so that a file may be larger than the memory.

    Lines that are not UTF-8 are yielded empty, and raised, all together, after the last line.
    """
    if not isinstance(source, (str, os.PathLike)):
        name, lines = stream_name(source), without_ends(source, at_start=True)
    else:
        name = os.fspath(source)
        lines = raw_lines(name)
    return decode_lines(lines, name, errors, warn)


def decode_lines(
    lines: Iterable[bytes], name: str, errors: str = "strict", warn: Callable[[str], None] | None = None, first: int = 1
) -> Iterator[str]:
    """Decode lines; see `stream_lines`.

    Args:
        lines: their bytes, as `raw_lines` yields them.
        name: of the file, for the errors.
        errors, warn: see `read_lines`.
        first: the number of the first line.
    """
    faults: list[str] = []
    faulty = 0
    for number, raw in enumerate(lines, first):
        try:
            yield decode_line(raw, name, number, errors)
        except InputError as error:
            if errors == "blank":
                (warn or str)(f"{error}: left blank")
            elif len(faults) < MAX_REPORTED:
                faults += error.problems
            faulty += errors != "blank"
            yield ""
    if faults:
        raise InputError(listed(name, faults, faulty))


def raw_lines(path: PathLike, start: int = 0, skip: int = 0, count: int | None = None) -> Iterator[bytes]:
    """Read the bytes of a file's lines, without the LF, the CR before it, and the byte order mark of the file.

    Args:
        path: the file.
        start: of a line, in bytes from the start of the file.
        skip: how many lines to leave out from there.
        count: how many to yield; None for all that follow.

    Raises:
        InputError: the file can't be read.
    """
    try:
        with open(path, "rb") as file:
            if start:  # a pipe can only be read from where it is
                file.seek(start)
            yield from itertools.islice(
                without_ends(file, at_start=start == 0), skip, None if count is None else skip + count
            )
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: PathLike, error: OSError) -> InputError:
    """Say that a file can't be read."""
    return InputError(f"{os.fspath(path)} can't be read: {error.strerror or error}")


def decode_line(raw: bytes, name: str, number: int, errors: str = "strict") -> str:
    """Decode one line.

    Args:
        raw: its bytes, as `raw_lines` yields them.
        name, number: of the file and the line, from 1, for the error.
        errors: as for `read_lines`; `"blank"` raises as `"strict"` does.

    Raises:
        InputError: the line is not UTF-8.
    """
    try:
        return raw.decode("utf-8", "strict" if errors == "blank" else errors)
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise InputError(f"{name}, line {number}: not UTF-8 ({where})") from error


def listed(name: str, faults: list[str], total: int) -> list[str]:
    """Keep the first faults of a file, with one more sentence for the rest.

    Args:
        name: of the file.
        faults: one sentence each, `MAX_REPORTED` at least if there are as many.
        total: how many there are.
    """
    rest = total - MAX_REPORTED
    return faults[:MAX_REPORTED] + ([f"{name}: {rest} more lines are not UTF-8"] if rest > 0 else [])


def write_lines(path: PathLike, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by LF, under its final name only when all are written.

    Raises:
        ValueError: a line holds an LF, so that it would be read back as two.
    """
    write_parallel([path], ((line,) for line in lines))


def write_parallel(paths: Sequence[PathLike], rows: Iterable[Sequence[str]]) -> None:
    """Write several files at once, as `write_lines` does: of each row, each file gets a line."""
    with ExitStack() as stack:
        temporary = [stack.enter_context(atomic_path(path)) for path in paths]
        files = [stack.enter_context(open(path, "wb")) for path in temporary]
        for number, row in enumerate(rows, 1):
            for path, file, line in zip(paths, files, row, strict=True):
                if "\n" in line:
                    raise ValueError(f"line {number} for {os.fspath(path)} holds a line feed: {line!r}")
                file.write(line.encode("utf-8") + b"\n")


@contextmanager
def atomic_path(path: PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`, for a file or a folder, and rename it to `path` when the block ends well.

    When the block raises, what is at the temporary path is removed, and what was at `path` before is untouched. The
    parent folders are made. A file replaces a file; a folder only an empty folder (see `owf_fairseq.files.folders`).
    """
    final = Path(os.path.abspath(path))
    final.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a rename is atomic only within a file system.
    temporary = final.parent / f".{final.name}.{os.getpid()}.tmp"
    remove(temporary)
    try:
        yield temporary
        os.replace(temporary, final)
    except BaseException:
        remove(temporary)
        raise


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def without_ends(file: Iterable[bytes], at_start: bool) -> Iterator[bytes]:
    """Yield a binary file's lines as `raw_lines` does.

    Args:
        file: iterates over lines that LF ends, and nothing else, as Python's binary files do.
        at_start: whether it is at the start of the file, where a byte order mark may be.
    """
    for number, line in enumerate(file):
        if number == 0 and at_start and line.startswith(BOM):
            line = line[len(BOM) :]
            if not line:
                return
        line = line[:-1] if line.endswith(b"\n") else line
        yield line[:-1] if line.endswith(b"\r") else line


def stream_name(stream: BinaryIO) -> str:
    """What an error calls a stream: its path, or standard input."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) and not name.startswith("<") else "standard input"
