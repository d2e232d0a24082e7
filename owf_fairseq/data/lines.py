"""Text files read and written line by line, such that line n stays line n.

Python's own readers end a line at a lone carriage return (universal newlines), and `str.splitlines` at U+2028, U+0085
and others as well. Either moves every translation after it by one line, so nothing here uses them: only LF separates
lines.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from owf_fairseq.errors import InputError

PathLike = str | os.PathLike[str]

_BOM = b"\xef\xbb\xbf"
_MAX_REPORTED = 10


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
    if not isinstance(source, (str, os.PathLike)):
        name = _stream_name(source)
        data = source.read()
    else:
        name = os.fspath(source)
        try:
            data = Path(name).read_bytes()
        except OSError as error:
            raise InputError(f"{name} can't be read: {error.strerror or error}") from error
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
    raw = data.split(b"\n")
    if raw[-1] == b"":
        raw.pop()
    lines: list[str] = []
    faulty: list[str] = []
    for number, line in enumerate(raw, 1):
        if line.endswith(b"\r"):
            line = line[:-1]
        try:
            lines.append(line.decode("utf-8", "strict" if errors == "blank" else errors))
        except UnicodeDecodeError as error:
            faulty.append(f"{name}, line {number}: not UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x})")
            lines.append("")
    if errors == "blank":
        for fault in faulty:
            (warn or str)(f"{fault}: left blank")
    elif faulty:
        if len(faulty) > _MAX_REPORTED:
            faulty = [*faulty[:_MAX_REPORTED], f"{name}: {len(faulty) - _MAX_REPORTED} more lines are not UTF-8"]
        raise InputError(faulty)
    return lines


def write_lines(path: PathLike, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by LF, under its final name only when all are written.

    Raises:
        ValueError: a line holds an LF, so that it would be read back as two.
    """
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        for number, line in enumerate(lines, 1):
            if "\n" in line:
                raise ValueError(f"line {number} for {os.fspath(path)} holds a line feed: {line!r}")
            file.write(line.encode("utf-8") + b"\n")


@contextmanager
def atomic_path(path: PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`, for a file or a folder, and rename it to `path` when the block ends well.

    When the block raises, what is at the temporary path is removed, and what was at `path` before is untouched. The
    parent folders are made. A file replaces a file; a folder only an empty folder (see `owf_fairseq.data.folders`).
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


def _stream_name(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) and not name.startswith("<") else "standard input"
