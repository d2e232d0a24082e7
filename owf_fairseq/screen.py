"""Standard output and standard error, where much may fail that no work should be lost by.

A terminal lacks a character, a pipe is closed, a device is full. Commands write their files first and then the screen
(``shown_after``); what the screen cannot take ends the command after that, with a sentence.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class OutputError(OSError):
    """Standard output has failed."""


@contextmanager
def tolerant_streams() -> Iterator[None]:
    """Until the end, no character that an encoding lacks, and no failure of standard error, raises.

    Such a character is written like ``\\u2020``; bytes that are written to ``sys.stdout.buffer`` stay what they are. A
    failure of standard output raises ``OutputError``.
    """
    before = sys.stdout, sys.stderr
    # Python has None for a stream that was closed before it started
    out, err = (stream or open(os.devnull, "w", encoding="utf-8") for stream in before)  # noqa: SIM115
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = _Named(out), _Forgiving(err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Stream:
    """A stream that is another one, but for what it does about a failure."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Named(_Stream):
    """Tells its failures from those of files."""

    @property
    def buffer(self) -> Any:
        return _Named(self._stream.buffer)

    def write(self, text: Any) -> int:
        with _as_output_error():
            written: int = self._stream.write(text)
        return written

    def flush(self) -> None:
        with _as_output_error():
            self._stream.flush()


@contextmanager
def _as_output_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


class _Forgiving(_Stream):
    """Says what it can: warnings and progress are not worth the work that they speak of."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


@contextmanager
def shown_after(text: str) -> Iterator[None]:
    """Prints a text after its block, which writes files, also where they can't be written: one of both is there."""
    try:
        yield
    finally:
        print(text, flush=True)


def explained(failure: OutputError) -> str:
    """What to say of a failure; nothing where the reader has enough (``owf params | head``).

    From here on standard output goes nowhere, so that Python can end.
    """
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    closed = failure.errno == errno.EPIPE
    return "" if closed else f"standard output can't be written: {failure.strerror}"
