"""Standard output and standard error, where much may fail that no work should be lost by.

A terminal lacks a character, a pipe is closed, a device is full. Commands write their files first and then the screen
(``shown_after``); what the screen cannot take ends the command after that, with a sentence.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def tolerant_streams() -> Iterator[None]:
    """Until the end, no character that an encoding lacks, and no failure of standard error, raises.

    Such a character is written like ``\\u2020``; bytes that are written to ``sys.stdout.buffer`` stay what they are.
    """
    before = sys.stdout, sys.stderr
    # Python has None for a stream that was closed before it started
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w", encoding="utf-8") for stream in before)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    sys.stderr = _Forgiving(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Forgiving:
    """A text stream that says what it can: warnings and progress are not worth the work that they speak of."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

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


def output_failure(error: OSError) -> str | None:
    """Whether an error is standard output's, which then goes nowhere, so that Python can end.

    Returns:
        What to say of it, nothing where its reader has enough (``owf params | head``); None if it is another error.
    """
    closed = isinstance(error, BrokenPipeError)
    if not closed and not _fails():
        return None
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return "" if closed else f"standard output can't be written: {error.strerror or error}"


def _fails() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False
