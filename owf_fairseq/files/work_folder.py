"""A folder for long work, which goes on where it was when it is interrupted."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from owf_fairseq.files.job import changed_settings
from owf_fairseq.files.lines import remove, write_lines
from owf_fairseq.files.lock import locked

_JOURNAL = "journal.jsonl"
_LOCK = "lock"


class WorkFolder:
    """A folder that keeps what is finished, until all is.

    It belongs to one command with certain settings: with others the work starts afresh.

    Args:
        path: of the folder, which is made.
        settings: all that the work's results depend on; a change of one of them makes what is in the folder useless.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.results: dict[str, dict[int, Any]] = {}
        self._settings = settings
        self._useless = False
        self._files = contextlib.ExitStack()

    def __enter__(self) -> WorkFolder:
        """Make the folder, or take up what is in it.

        Raises:
            InputError: another process works in the folder.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            opened.enter_context(locked(self.path / _LOCK, f"{self.path}: another process is making this output now"))
            if not self._resume():
                self.results = {}
                self._clear()
                write_lines(self.path / _JOURNAL, [json.dumps({"settings": self._settings})])
            self._journal = opened.enter_context(open(self.path / _JOURNAL, "a", encoding="utf-8"))
            self._files = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the folder when the work is done; keep it when it was interrupted."""
        with self._files:
            if kind is None or self._useless:
                self._clear()
                remove(self.path)

    def _clear(self) -> None:
        # first what says that the rest is complete
        (self.path / _JOURNAL).unlink(missing_ok=True)
        for found in self.path.iterdir():
            if found.name != _LOCK:
                remove(found)

    def _resume(self) -> bool:
        """Read the journal; False if there is none, or one of other settings."""
        path = self.path / _JOURNAL
        try:
            # what follows the last LF was being written when the run ended
            first, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            before = json.loads(first)["settings"]
            for line in lines:
                entry = json.loads(line)
                self.results.setdefault(entry["step"], {})[entry["number"]] = entry["result"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        others = changed_settings(before, json.loads(json.dumps(self._settings)))
        if others:
            _say(f"{self.path} is of an interrupted run with other {', '.join(sorted(others))}: starting afresh")
            return False
        write_lines(path, [first, *lines])
        for left in self.path.rglob(".*.tmp"):
            remove(left)
        if self.results:
            _say(f"{self.path}: going on where a run was interrupted")
        return True

    def record(self, step: str, number: int, result: Any) -> None:
        """Remember that a part is done, and what came of it."""
        self.results.setdefault(step, {})[number] = result
        self._journal.write(json.dumps({"step": step, "number": number, "result": result}) + "\n")
        self._journal.flush()

    @contextlib.contextmanager
    def useless_after(self, error: type[BaseException]) -> Iterator[None]:
        """What is done is not worth keeping if an error is raised in this block."""
        try:
            yield
        except error:
            self._useless = True
            raise


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
