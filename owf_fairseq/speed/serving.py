"""Translations a second when several clients ask at the same time: what a server of an exported model does.

Each client sends one sentence, waits for its translation, and sends the next (a closed loop), until all sentences are
translated. One model serves all clients, with as many searches at a time as the cores allow; more requests wait. A
latency is what a client waits for, the wait for its turn included.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from owf_fairseq.decoding.search import Backend, SearchOptions
from owf_fairseq.progress import Progress
from owf_fairseq.speed.measurement import Sentences, no_garbage_collection


@dataclass
class Served:
    """One model with so many clients; a value for each run.

    Attributes:
        clients: that ask at the same time.
        sentences: of a run.
        seconds: until the last of them was translated.
        latencies: seconds of every request.
    """

    clients: int
    sentences: int
    seconds: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    @property
    def translations_per_s(self) -> list[float]:
        """Of each run."""
        return [self.sentences / seconds for seconds in self.seconds]

    def latency(self, percent: int) -> float:
        """Seconds that so many percent of the requests were done within, from 1 to 99."""
        if len(self.latencies) == 1:
            return self.latencies[0]
        return statistics.quantiles(self.latencies, n=100, method="inclusive")[percent - 1]


def serve(
    backends: Sequence[Backend],
    sentences: Sequence[Sentences],
    options: SearchOptions,
    clients: Sequence[int],
    progress: Progress,
    runs: int = 5,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[Served]]:
    """Lets clients ask all models, in turn.

    Args:
        backends: the models, which take searches from several threads.
        sentences: for each model the same ones, in its pieces.
        options: of the search.
        clients: numbers of clients.
        progress: counts passes over the sentences: ``runs * len(clients) * len(backends)``.
        runs: passes with each number of clients.
        warmup: searches of each model before.
        clock: seconds; a monotonic one.

    Returns:
        For each number of clients the models' results.
    """
    order = random.Random(1).sample(range(len(sentences[0])), len(sentences[0]))  # short and long ones mixed
    mixed = [[own[n] for n in order] for own in sentences]
    for backend, own in zip(backends, mixed, strict=True):
        for _ in range(warmup):
            backend.search([own[0]], options)
    results = [[Served(number, len(order)) for _ in backends] for number in clients]
    for run in range(runs):
        for row in results:
            for place in range(len(backends)):
                model = (run + place) % len(backends)
                _one_pass(backends[model], mixed[model], options, row[model], clock)
                progress.advance(1)
            rates = "; ".join(f"{served.translations_per_s[-1]:,.1f} translations/s" for served in row)
            progress.say(f"run {run + 1} of {runs}, clients: {row[0].clients}: {rates}")
    return results


def _one_pass(
    backend: Backend,
    sentences: Sentences,
    options: SearchOptions,
    served: Served,
    clock: Callable[[], float],
) -> None:
    """All sentences once."""
    waiting, lock = iter(sentences), threading.Lock()

    def ask() -> list[float]:
        latencies: list[float] = []
        while True:
            with lock:
                pieces = next(waiting, None)
            if pieces is None:
                return latencies
            begun = clock()
            backend.search([pieces], options)
            latencies.append(clock() - begun)

    with no_garbage_collection(), ThreadPoolExecutor(served.clients) as pool:
        begun = clock()
        of_clients = [pool.submit(ask) for _ in range(served.clients)]
        served.latencies += [latency for one in of_clients for latency in one.result()]
        served.seconds.append(clock() - begun)
