"""Timing, with models whose speed is known and a clock that only they move: every number is exact."""

import gc
import io
import statistics

import pytest

from owf_fairseq.decoding.search import Hypothesis, SearchOptions
from owf_fairseq.progress import Progress
from owf_fairseq.speed.measurement import (
    OUT_OF_MEMORY,
    Measurement,
    SpeedSetting,
    Spread,
    cut_into_batches,
    draw_batches,
    first_token_only,
    is_lack_of_memory,
    measure,
    number_of_turns,
)

FIXED = SearchOptions(beam=2, max_len_a=0, max_len_b=4, min_len=4)


@pytest.fixture(autouse=True)
def no_collection(monkeypatch):
    """Collecting what torch and the other tests have left takes a second; here it would be done at every run."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class FakeBackend:
    """A model that needs ``seconds`` for a sentence, asynchronously: the time passes when somebody waits for it."""

    name, max_source_length, max_target_length, source_symbols = "fake", 100, 100, ("a", "b")

    def __init__(self, name, clock, log, seconds, fails=lambda batch: None):
        self.label, self.clock, self.log, self.fails = name, clock, log, fails
        self.seconds = seconds  # a number, or one for each search of whole sentences in turn
        self.pending = 0.0
        self.collecting = []

    def search(self, batch, options):
        error = self.fails(batch)
        if error is not None:
            raise error
        self.collecting.append(gc.isenabled())
        whole = options.max_len_b > 0
        self.log.append((self.label, len(batch), whole))
        each = self.seconds.pop(0) if isinstance(self.seconds, list) and whole else self.seconds
        self.pending += len(batch) * each if whole else 0.25
        pieces = ("x",) * options.max_len_b
        return [[Hypothesis(pieces, -1.0, -5.0), Hypothesis(("y",) * 50, -2.0, 0.0)] for _ in batch]

    def synchronize(self):
        self.clock.now += self.pending
        self.pending = 0.0


def make_setting(sizes, models=2):
    batches = [[["a"]] * size for size in sizes]
    return SpeedSetting(max(sizes), FIXED, [batches] * models, (1, 4))


def run(backends, settings, clock, **more):
    progress = Progress("batches", number_of_turns(settings, more.get("runs", 5)), stream=io.StringIO())
    measurements = measure(backends, settings, progress, clock=clock, **more)
    assert progress.done == progress.total
    return measurements, progress.stream.getvalue()


def whole_searches(log):
    return [(name, size) for name, size, whole in log if whole]


def test_speed_is_pieces_of_the_best_hypotheses_for_seconds_of_search():
    clock, log = Clock(), []
    backends = [FakeBackend("slow", clock, log, 2.0), FakeBackend("fast", clock, log, 0.5)]
    [[slow, fast]], _ = run(backends, [make_setting([2, 3, 1])], clock, runs=3, warmup=0)
    assert slow.tokens == fast.tokens == [4 * 6] * 3
    assert slow.seconds == [2.0 * 6] * 3
    assert slow.tokens_per_s == [2.0] * 3
    assert fast.tokens_per_s == [8.0] * 3
    assert fast.ratios(slow) == [4.0] * 3
    assert fast.first_token_seconds == slow.first_token_seconds == [pytest.approx(0.25)] * 3


def test_ratio_is_taken_run_by_run():
    """The machine is half as fast in the second run: the speeds spread, the ratio does not."""
    clock, log = Clock(), []
    backends = [FakeBackend("a", clock, log, [1.0, 2.0, 1.0]), FakeBackend("b", clock, log, [0.5, 1.0, 0.25])]
    [[a, b]], _ = run(backends, [make_setting([1])], clock, runs=3, warmup=0)
    assert a.tokens_per_s == [4.0, 2.0, 4.0]
    assert b.ratios(a) == [2.0, 2.0, 4.0]
    ratio = Spread.of(b.ratios(a))
    assert (ratio.mean, ratio.median) == (pytest.approx(8 / 3), 2.0)
    assert ratio.sd == pytest.approx(statistics.stdev([2.0, 2.0, 4.0]))


def test_all_models_translate_a_batch_before_any_gets_the_next_and_each_begins_in_turn():
    clock, log = Clock(), []
    backends = [FakeBackend(name, clock, log, 1.0) for name in "abc"]
    run(backends, [make_setting([1, 2], models=3)], clock, runs=2, warmup=0)
    turns = [log[start : start + 6] for start in range(0, len(log), 6)]
    assert [whole_searches(turn) for turn in turns] == [
        [("a", 1), ("b", 1), ("c", 1)],
        [("b", 2), ("c", 2), ("a", 2)],
        [("b", 1), ("c", 1), ("a", 1)],
        [("c", 2), ("a", 2), ("b", 2)],
    ]


def test_every_run_goes_through_all_settings():
    clock, log = Clock(), []
    backends = [FakeBackend("a", clock, log, 1.0)]
    run(backends, [make_setting([1], 1), make_setting([2, 2], 1)], clock, runs=2, warmup=0)
    assert [size for _, size in whole_searches(log)] == [1, 2, 2] * 2


def test_warm_up_is_not_timed():
    clock, log = Clock(), []
    backends = [FakeBackend("a", clock, log, [100.0, 100.0, 1.0])]
    [[a]], _ = run(backends, [make_setting([1], 1)], clock, runs=1, warmup=2)
    assert a.tokens_per_s == [4.0]
    assert len(whole_searches(log)) == 3


def test_the_device_is_waited_for_before_each_reading_of_the_clock():
    clock = Clock()
    backend = FakeBackend("a", clock, [], 1.0)
    events = []
    search, synchronize = backend.search, backend.synchronize
    backend.search = lambda *arguments: events.append("search") or search(*arguments)
    backend.synchronize = lambda: events.append("wait") or synchronize()

    def read():
        events.append("clock")
        return clock()

    run([backend], [make_setting([1], 1)], read, runs=1, warmup=0)
    assert events[1:] == ["wait", "clock", "search", "wait", "clock"] * 2  # the first wait ends the warm-up


def test_garbage_is_not_collected_while_the_clock_runs():
    clock = Clock()
    backend = FakeBackend("a", clock, [], 1.0)
    assert gc.isenabled()
    run([backend], [make_setting([1], 1)], clock, runs=2, warmup=0)
    assert gc.isenabled()
    assert backend.collecting == [False] * 4


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 80 bytes."),
    ],
)
def test_lack_of_memory_costs_one_row_of_one_model(error):
    clock, log = Clock(), []
    greedy = FakeBackend("greedy", clock, log, 1.0, fails=lambda batch: error if len(batch) == 8 else None)
    backends = [FakeBackend("modest", clock, log, 1.0), greedy]
    settings = [make_setting([2]), make_setting([8]), make_setting([4])]
    for warmup in (0, 1):
        results, said = run(backends, settings, clock, runs=2, warmup=warmup)
        assert [measurement.failure for measurement in results[1]] == [None, OUT_OF_MEMORY]
        assert results[1][1].tokens_per_s == results[1][1].ratios(results[1][0]) == []
        assert results[1][0].tokens_per_s == [4.0, 4.0]
        for row in (0, 2):
            assert [measurement.tokens_per_s for measurement in results[row]] == [[4.0, 4.0]] * 2
        assert "batch size 8: 4.0 tokens/s; out of memory" in said


def test_without_the_first_model_there_is_no_ratio():
    first, second = Measurement([4], [1.0], [0.1], failure=OUT_OF_MEMORY), Measurement([4], [1.0], [0.1])
    assert second.ratios(first) == []
    assert second.tokens_per_s == [4.0]


def test_other_errors_end_the_measurement():
    clock = Clock()
    backend = FakeBackend("a", clock, [], 1.0, fails=lambda batch: RuntimeError("shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="multiplied"):
        run([backend], [make_setting([1], 1)], clock, runs=1)
    assert not is_lack_of_memory(ValueError("x"))


def test_the_log_says_each_run():
    clock = Clock()
    backends = [FakeBackend("a", clock, [], 1.0), FakeBackend("b", clock, [], 0.5)]
    _, said = run(backends, [make_setting([2])], clock, runs=2)
    assert said.splitlines() == [
        "run 1 of 2, 1 source pieces, batch size 2: 4.0 tokens/s; 8.0 tokens/s",
        "run 2 of 2, 1 source pieces, batch size 2: 4.0 tokens/s; 8.0 tokens/s",
    ]


def test_spread():
    assert Spread.of([]) is None
    assert Spread.of([3.0]) == Spread(3.0, None, 3.0)
    assert Spread.of([1.0, 2.0, 6.0]) == Spread(3.0, pytest.approx(7**0.5), 2.0)


def test_first_token_needs_one_step():
    options = first_token_only(SearchOptions(beam=3, max_len_a=2, max_len_b=10, min_len=7))
    assert options.cap(20) == 0
    assert options.beam == 3


def test_random_sentences_are_the_same_for_every_model_and_run():
    symbols = [f"w{number}" for number in range(50)]
    batches = draw_batches(symbols, 7, 3, 4)
    assert [[len(sentence) for sentence in batch] for batch in batches] == [[7, 7, 7]] * 4
    assert batches == draw_batches(symbols, 7, 3, 4)
    assert len({tuple(sentence) for batch in batches for sentence in batch}) == 12
    assert {piece for batch in batches for sentence in batch for piece in sentence} <= set(symbols)


def test_text_is_cut_into_batches_of_the_same_sentences_sorted_by_length():
    first = [["a"] * 5, ["b"], ["c"] * 3, ["d"] * 2, ["e"] * 4]
    second = [[piece.upper() for piece in sentence] * 2 for sentence in first]
    batches = cut_into_batches([first, second], 2)
    assert [[sentence[0] for sentence in batch] for batch in batches[0]] == [["b", "d"], ["c", "e"], ["a"]]
    assert [[sentence[0] for sentence in batch] for batch in batches[1]] == [["B", "D"], ["C", "E"], ["A"]]
    setting = SpeedSetting(2, FIXED, batches)
    assert (setting.source_length(0), setting.source_length(1)) == (3.0, 6.0)
