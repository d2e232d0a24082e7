"""Long work in several processes, which goes on where it was when it is interrupted."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

from owf_fairseq.files.lines import remove, write_lines
from owf_fairseq.files.lock import locked
from owf_fairseq.progress import Progress

_JOURNAL = "journal.jsonl"
_LOCK = "lock"

R = TypeVar("R")


class Item(Protocol):
    """A part of the work."""

    @property
    def number(self) -> int:
        """Its own among all parts."""

    @property
    def count(self) -> int:
        """How many of what is counted are in it."""


class WorkerLost(RuntimeError):
    """A process ended before its work was done."""


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
        now = json.loads(json.dumps(self._settings))
        changed = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        if changed:
            _say(f"{self.path} is of an interrupted run with other {', '.join(changed)}: starting afresh")
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


class Workers:
    """Processes that do parts of the work.

    Each is a fresh interpreter (`spawn`), is used for all steps, and ends when this process does.

    Args:
        count: how many; 1 is this process itself.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the processes; a further step would start others."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def each(
        self,
        work: WorkFolder,
        task: Callable[..., R],
        kind: type[R],
        items: Sequence[tuple[Item, tuple[Any, ...]]],
        label: str,
    ) -> dict[int, R]:
        """Do a step for all items, in any order.

        Args:
            work: keeps the results: what is in it already isn't done again.
            task: a function of a module; it takes an item and its arguments.
            kind: of its results: a dataclass of what JSON can hold.
            items: each with the further arguments for it.
            label: of the progress.

        Returns:
            The result for each item's number.

        Raises:
            WorkerLost: a process was killed.
            Exception: what `task` raises.
        """
        step = task.__name__
        done = work.results.get(step, {})
        todo = [(item, arguments) for item, arguments in items if item.number not in done]
        with Progress("pairs", sum(item.count for item, _ in todo), label=label) as progress:
            for item, result in self._results(task, todo):
                work.record(step, item.number, vars(result))
                progress.advance(item.count)
        return {item.number: kind(**work.results[step][item.number]) for item, _ in items}

    def _results(
        self, task: Callable[..., R], todo: Sequence[tuple[Item, tuple[Any, ...]]]
    ) -> Iterator[tuple[Item, R]]:
        if self.count == 1 or len(todo) < 2:
            for item, arguments in todo:
                yield item, task(item, *arguments)
            return
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, mp_context=context, initializer=_begin)
        try:
            futures: dict[Future[R], Item] = {
                self._pool.submit(task, item, *arguments): item for item, arguments in todo
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise WorkerLost(
                f"one of {self.count} processes was ended from outside, as it happens when the memory is used up; the "
                "same command goes on from here, and with a smaller `--workers` it needs less memory"
            ) from error


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cores() -> int:
    """Cores that this process may use."""
    with contextlib.suppress(AttributeError):  # there is no such function on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin() -> None:
    """Prepare a worker: Ctrl-C ends it without a word, and it doesn't outlive the process that started it."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # as for a job in the background of a script
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
