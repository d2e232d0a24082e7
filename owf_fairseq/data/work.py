"""Long work in several processes, whose results a folder keeps."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Protocol, TypeVar

from owf_fairseq.files.work_folder import WorkFolder
from owf_fairseq.progress import Progress

R = TypeVar("R")
_T = TypeVar("_T")


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
        with self._started() as pool:
            futures: dict[Future[R], Item] = {pool.submit(task, item, *arguments): item for item, arguments in todo}
            for future in as_completed(futures):
                yield futures[future], future.result()

    def map(self, task: Callable[[_T], R], items: Sequence[_T]) -> Iterator[R]:
        """Do something with each of several items, and give the results in their order; none is kept.

        Raises:
            WorkerLost: a process was killed.
            Exception: what `task` raises.
        """
        if self.count == 1 or len(items) < 2:
            yield from map(task, items)
            return
        with self._started() as pool:
            yield from pool.map(task, items)

    @contextlib.contextmanager
    def _started(self) -> Iterator[ProcessPoolExecutor]:
        """The processes; says so if one is lost in this block."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, mp_context=context, initializer=_begin)
        try:
            yield self._pool
        except BrokenProcessPool as error:
            raise WorkerLost(
                f"one of {self.count} processes was ended from outside, as it happens when the memory is used up; the "
                "same command goes on from here, and with a smaller `--workers` it needs less memory"
            ) from error


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
