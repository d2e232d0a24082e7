"""How far long work is: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, TextIO

from tqdm import tqdm

_SECONDS = 30.0
"""Between two lines in a log."""


class Progress:
    """Counts what is done, on standard error.

    Args:
        what: is counted, in the plural.
        total: how many there will be; None if only the end tells.
        stream: to write to; standard error by default.
        label: before the numbers.
        seconds: between two lines where the stream is no terminal.
    """

    def __init__(
        self, what: str, total: int | None, stream: TextIO | None = None, label: str = "", seconds: float = _SECONDS
    ) -> None:
        self.what, self.total, self.label, self.seconds = what, total, label, seconds
        self.stream = stream or sys.stderr
        self.done = self.before = 0
        self.begun = self.last = time.monotonic()
        terminal = self.stream.isatty()
        self.bar: Any = (
            tqdm(total=total, unit=f" {what}", desc=label or None, file=self.stream, dynamic_ncols=True)
            if terminal
            else None
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    def resume(self, done: int) -> None:
        """Counts what was done in an earlier run, which says nothing of how fast this one is."""
        self.done += done
        self.before += done
        if self.bar is not None:
            self.bar.initial = self.bar.n = self.done
            self.bar.refresh()

    def advance(self, done: int, note: str = "") -> None:
        """Counts on.

        Args:
            done: how many more are done.
            note: to show behind the numbers.
        """
        self.done += done
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(done)
            return
        now = time.monotonic()
        if now - self.last >= self.seconds:
            self.last = now
            start = f"{self.label}: " if self.label else ""
            rest = f", {note}" if note else ""
            of = "" if self.total is None else f" of {self.total:,}"
            left = self._left(now - self.begun)
            self._write(f"{start}{self.done:,}{of} {self.what} after {now - self.begun:.0f} s{left}{rest}")

    def _left(self, seconds: float) -> str:
        """How long the rest will take, if that can be told."""
        if self.total is None or not self.before < self.done < self.total:
            return ""
        left = seconds * (self.total - self.done) / (self.done - self.before)
        return f", {left:.0f} s left" if left < 100 else f", {left / 60:.0f} min left"

    def seconds_so_far(self) -> float:
        """Since it was made."""
        return time.monotonic() - self.begun

    def say(self, text: str) -> None:
        """Writes a line without breaking the bar."""
        self._write(text)

    def _write(self, text: str) -> None:
        if self.bar is not None:
            self.bar.write(text, file=self.stream)
        else:
            print(text, file=self.stream, flush=True)
