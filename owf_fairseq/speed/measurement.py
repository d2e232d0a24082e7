"""Decoding speed: several models in turn on the same sentences, with a clock around nothing but the search.

A token is a piece of the best hypothesis; the end-of-sentence symbol is not counted. Loading and segmentation are not
timed. All models translate a batch before any of them gets the next, and who begins changes from batch to batch: what
slows the machine down for a while slows all of them, and their ratio in a run holds.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from owf_fairseq.decoding.search import Backend, SearchOptions
from owf_fairseq.decoding.translator import Batching
from owf_fairseq.progress import Progress

Sentences = Sequence[Sequence[str]]
OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True)
class SpeedSetting:
    """What is decoded in one row of the table.

    Attributes:
        batch_size: sentences that are decoded together, the last batch aside; None with ``max_tokens``.
        options: of the search.
        batches: for each model the same sentences in its own pieces.
        lengths: pieces of each source and of each target; None where they vary.
        max_tokens: pieces of a batch at most, padding and end-of-sentence symbols included; None with ``batch_size``.
        words: of the sources, as text: what white space separates; None where there is no text.
    """

    batch_size: int | None
    options: SearchOptions
    batches: Sequence[Sequence[Sentences]]
    lengths: tuple[int, int] | None = None
    max_tokens: int | None = None
    words: int | None = None

    def source_length(self, model: int) -> float:
        """Pieces of a sentence in the mean, the end-of-sentence symbol aside, for a model."""
        return statistics.fmean(len(pieces) for batch in self.batches[model] for pieces in batch)


@dataclass
class Measurement:
    """One model in one setting; a value for each run.

    Attributes:
        tokens: pieces of the best hypotheses.
        seconds: of search, for all batches.
        first_token_seconds: of a search that ends after one decoder step, in the mean over the batches.
        failure: why there are no values.
    """

    tokens: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    first_token_seconds: list[float] = field(default_factory=list)
    failure: str | None = None

    @property
    def tokens_per_s(self) -> list[float]:
        """Of each run; empty after a failure."""
        if self.failure is not None:
            return []
        return [tokens / seconds for tokens, seconds in zip(self.tokens, self.seconds, strict=True)]

    def ratios(self, first: Measurement) -> list[float]:
        """Speed relative to another model's, run by run; empty after a failure of either."""
        if not (self.tokens_per_s and first.tokens_per_s):
            return []
        return [own / other for own, other in zip(self.tokens_per_s, first.tokens_per_s, strict=True)]


@dataclass(frozen=True)
class Spread:
    """Numbers in short: their mean, sample standard deviation (None of a single one), and median."""

    mean: float
    sd: float | None
    median: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None of nothing."""
        if not values:
            return None
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), sd, statistics.median(values))


def measure(
    backends: Sequence[Backend],
    settings: Sequence[SpeedSetting],
    progress: Progress,
    runs: int = 5,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[Measurement]]:
    """Times all models in all settings.

    Args:
        backends: the models.
        settings: each has batches for each model.
        progress: counts ``number_of_turns(settings, runs)``.
        runs: passes over all sentences of all settings.
        warmup: searches of each model for the first batch of each setting that are not timed.
        clock: seconds; a monotonic one.

    Returns:
        For each setting the models' measurements. A model that runs out of memory in a setting goes on in the others.
    """
    results = [[Measurement() for _ in backends] for _ in settings]
    for setting, measurements in zip(settings, results, strict=True):
        for model, backend in enumerate(backends):
            with noting_lack_of_memory(measurements[model]):
                for _ in range(warmup):
                    backend.search(setting.batches[model][0], setting.options)
                    backend.search(setting.batches[model][0], first_token_only(setting.options))
                backend.synchronize()
    for run in range(runs):
        for setting, measurements in zip(settings, results, strict=True):
            _one_run(backends, setting, measurements, run, clock, progress)
            speeds = [
                measurement.failure or f"{measurement.tokens_per_s[-1]:,.1f} tokens/s" for measurement in measurements
            ]
            size = f"size {setting.batch_size}" if setting.max_tokens is None else f"of {setting.max_tokens:,} pieces"
            what = f"{setting.source_length(0):.4g} source pieces, batch {size}"
            progress.say(f"run {run + 1} of {runs}, {what}: {'; '.join(speeds)}")
    return results


def number_of_turns(settings: Sequence[SpeedSetting], runs: int) -> int:
    """How many batches are decoded by all models."""
    return runs * sum(len(setting.batches[0]) for setting in settings)


def _one_run(
    backends: Sequence[Backend],
    setting: SpeedSetting,
    measurements: Sequence[Measurement],
    run: int,
    clock: Callable[[], float],
    progress: Progress,
) -> None:
    """Every model translates every batch once."""
    number = len(setting.batches[0])
    for measurement in measurements:
        measurement.tokens.append(0)
        measurement.seconds.append(0.0)
        measurement.first_token_seconds.append(0.0)
    with no_garbage_collection():
        for turn in range(number):
            for place in range(len(backends)):
                model = (run + turn + place) % len(backends)
                measurement = measurements[model]
                if measurement.failure is not None:
                    continue
                backend, batch = backends[model], setting.batches[model][turn]
                with noting_lack_of_memory(measurement):
                    seconds, tokens = _timed(backend, batch, setting.options, clock)
                    first_token_seconds, _ = _timed(backend, batch, first_token_only(setting.options), clock)
                    measurement.tokens[run] += tokens
                    measurement.seconds[run] += seconds
                    measurement.first_token_seconds[run] += first_token_seconds / number
            progress.advance(1)


def _timed(backend: Backend, batch: Sentences, options: SearchOptions, clock: Callable[[], float]) -> tuple[float, int]:
    """Seconds of a search, and pieces of the best hypotheses."""
    backend.synchronize()
    begun = clock()
    found = backend.search(batch, options)
    backend.synchronize()
    seconds = clock() - begun
    return seconds, sum(len(hypotheses[0].pieces) for hypotheses in found)


def first_token_only(options: SearchOptions) -> SearchOptions:
    """A search that ends with the first decoder step: the time until a user could see a first piece."""
    return replace(options, max_len_a=0.0, max_len_b=0, min_len=0)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collects what there is, and then nothing until the end."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def noting_lack_of_memory(measurement: Measurement) -> Iterator[None]:
    """Notes a failure for lack of memory in place of ending the whole measurement."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        measurement.failure = OUT_OF_MEMORY
    else:
        return
    # outside of the handler, where the error no longer keeps the tensors of its frames
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether an error says so, for the CPU or a GPU: torch has no one type for it."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(
        sign in text for sign in ("out of memory", "not enough memory", "can't allocate memory", "bad_alloc")
    )


def draw_batches(symbols: Sequence[str], length: int, batch_size: int, number: int) -> list[list[list[str]]]:
    """Random sentences of equal length: always the same for the same symbols and numbers.

    Args:
        symbols: pieces to choose from.
        length: pieces of a sentence, at least one.
        batch_size: sentences of a batch.
        number: of batches.
    """
    generator = random.Random(length)
    return [[generator.choices(symbols, k=length) for _ in range(batch_size)] for _ in range(number)]


def cut_into_batches(
    sentences: Sequence[Sequence[Sequence[str]]], batch_size: int | None = None, max_tokens: int | None = None
) -> list[list[list[Sequence[str]]]]:
    """Batches of sentences of like length, short ones first.

    Args:
        sentences: for each model the same sentences in its pieces.
        batch_size: sentences of a batch, which the first model's pieces order; the last may have fewer.
        max_tokens: pieces of a batch at most, padding and end-of-sentence symbols included, whichever model's; see
            ``translator.Batching``.

    Returns:
        For each model its batches, which hold the same sentences.
    """
    if max_tokens is not None:
        longest = [max(map(len, pieces)) for pieces in zip(*sentences, strict=True)]
        batches = [*Batching(max_tokens).batches(longest)][::-1]
    else:
        assert batch_size is not None
        lengths = [len(pieces) for pieces in sentences[0]]
        order = sorted(range(len(lengths)), key=lambda number: lengths[number])
        batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return [[[of_model[n] for n in batch] for batch in batches] for of_model in sentences]
