"""Peak memory, in a real process of its own, and what the numbers stand for."""

import mmap
import sys

import pytest

from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.speed import memory
from owf_fairseq.speed.benchmark_models import Loading, describe_candidate
from owf_fairseq.speed.benchmark_names import Named

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
MB = 1e6


class Ended:
    def __init__(self, error):
        self.error = error

    def load(self, loading):
        raise self.error


def test_peak_is_weights_and_search_without_imports():
    candidate = describe_candidate(Named("a", "owf_small"), [], 60_000)  # 31 MB of embeddings, far more than all else
    options = SearchOptions(beam=2, max_len_a=0, max_len_b=3, min_len=3)
    peak = memory.peak_memory(candidate, [["w1"] * 5], options, loading=Loading(cpu=True, packed=False))
    weights = candidate.as_json("float32")["weights_mb"]
    assert weights > 30
    assert weights < peak / MB < weights + 40


@pytest.mark.parametrize(
    ("error", "expected"),
    [(MemoryError(), None), (RuntimeError("CUDA out of memory"), None), (KeyError("x"), KeyError)],
)
def test_lack_of_memory_is_no_number(error, expected, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(memory, "ProcessPoolExecutor", lambda number, mp_context: ThreadPoolExecutor(number))
    arguments = (Ended(error), [["a"]], SearchOptions(), Loading())
    if expected is None:
        assert memory.peak_memory(*arguments) is None
    else:
        with pytest.raises(expected):
            memory.peak_memory(*arguments)


def test_the_peak_is_that_since_it_was_forgotten():
    block = bytearray(80_000_000)
    del block
    memory.forget_peak()
    before = memory.peak_resident()
    block = mmap.mmap(-1, 40_000_000)  # and not what the process has had before
    for _ in range(40):
        block.write(b"x" * 1_000_000)
    assert 35 * MB < memory.peak_resident() - before < 60 * MB
    block.close()
    assert 35 * MB < memory.peak_resident() - before < 60 * MB
