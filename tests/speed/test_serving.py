"""Clients that ask at the same time: all sentences are translated, by all models in turn, and latencies are theirs."""

import io
import statistics
import threading

import pytest

from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.progress import Progress
from owf_fairseq.speed.serving import Served, serve


class Server:
    """Notes who asked for what, and takes a second of a clock of its own for a piece."""

    def __init__(self, name, log):
        self.name, self.log, self.at_a_time, self.most = name, log, 0, 0
        self.lock = threading.Lock()

    def search(self, batch, options):
        with self.lock:
            self.at_a_time += 1
            self.most = max(self.most, self.at_a_time)
        if len(self.together) > 1:
            self.together[0].wait(5)
        with self.lock:
            self.at_a_time -= 1
            self.log.append((self.name, batch, threading.get_ident()))

    together = ()


SENTENCES = [[f"w{n}"] * (1 + n % 3) for n in range(12)]


def served(servers, clients, runs=1, **how):
    with Progress("passes", 99, io.StringIO()) as progress:
        return serve(servers, [SENTENCES] * len(servers), SearchOptions(beam=1), clients, progress, runs, **how)


def test_every_sentence_is_asked_for_once_in_every_pass():
    log = []
    results = served([Server("a", log), Server("b", log)], [1, 3], runs=2, warmup=0)
    assert [[len(one.latencies) for one in row] for row in results] == [[24, 24], [24, 24]]
    passes = [log[start : start + 12] for start in range(0, len(log), 12)]
    assert [{name for name, *_ in one} for one in passes] == [{"a"}, {"b"}] * 2 + [{"b"}, {"a"}] * 2
    for one in passes:
        assert sorted(batch[0] for _, batch, _ in one) == sorted(SENTENCES)
        assert {len(batch) for _, batch, _ in one} == {1}


def test_clients_ask_at_the_same_time():
    server = Server("a", [])
    server.together = (threading.Barrier(3), 3)  # which only three that wait together pass
    served([server], [3], warmup=0)
    assert server.most == 3


def test_what_is_computed_of_the_times():
    times = iter([0.0, 10.0, 14.0, 14.0, 20.0, 21.0, 21.0])  # of the pass; from and to for each of two requests
    with Progress("passes", 1, io.StringIO()) as progress:
        server = Server("a", [])
        [[one]] = serve([server], [SENTENCES[:2]], SearchOptions(), [1], progress, 1, 0, clock=lambda: next(times))
    assert one.latencies == [4.0, 6.0]
    assert one.translations_per_s == [pytest.approx(2 / 21)]
    many = Served(1, 1, latencies=[float(n) for n in range(1, 102)])
    assert (many.latency(50), many.latency(95)) == (51.0, 96.0)
    assert many.latency(50) == statistics.median(many.latencies)
    assert Served(1, 1, latencies=[3.0]).latency(95) == 3.0


def test_a_models_failure_ends_the_measurement():
    class Broken:
        def search(self, batch, options):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        served([Broken()], [2], warmup=0)
