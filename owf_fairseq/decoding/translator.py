"""Lines of text to lines of text: exactly one result for each line, in order, whatever the line holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from owf_fairseq.data.languages import has_spaces
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.decoding.long_lines import split_to_fit
from owf_fairseq.decoding.search import Backend, Hypothesis, SearchOptions
from owf_fairseq.errors import InputError, too_small
from owf_fairseq.progress import Progress

MIN_SOURCE_LENGTH = 8
"""Pieces that a part of a line may have at least: fewer say nothing."""


@dataclass(frozen=True)
class ScoredText:
    """A translation of a line.

    Attributes:
        text: without line ends.
        score: see ``search.Hypothesis``; 0 for a blank line.
    """

    text: str
    score: float


@dataclass(frozen=True)
class Batching:
    """How sentences are put together; their translations don't depend on it.

    Attributes:
        max_tokens: pieces of a batch, padding and end-of-sentence symbols included.
        max_sentences: of a batch; None for no limit.
        buffer: lines that are sorted by length together, and that are done before any of them is given out.
    """

    max_tokens: int = 2000
    max_sentences: int | None = None
    buffer: int = 10_000

    def problems(self) -> list[str]:
        """What is wrong with the values, a sentence each, naming the flags."""
        named = [
            ("--max-tokens", self.max_tokens),
            ("--batch-size", self.max_sentences),
            ("--buffer-size", self.buffer),
        ]
        return [problem for each in named for problem in too_small(*each)]

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Puts sentences of these lengths together, by number: the longest first, whose memory is the largest."""
        batch: list[int] = []
        for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
            tokens = (len(batch) + 1) * (lengths[batch[0] if batch else number] + 1)
            if batch and (tokens > self.max_tokens or len(batch) == self.max_sentences):
                yield batch
                batch = []
            batch.append(number)
        if batch:
            yield batch


@dataclass
class Translator:
    """Translates text.

    Attributes:
        backend: that decodes.
        segmentation: of the backend's model.
        options: of the search.
        batching: see there.
        long_lines: what becomes of a line with more pieces than the model takes: ``split``, the parts are translated
            and put together again, or ``blank``.
        max_source_length: pieces of a line or part; at most what the model takes, which is the default.
        warn: is told of every line that was not translated as it is.
        name: of the input, in warnings.
        searches: of the backend, at the same time.
    """

    backend: Backend
    segmentation: Segmentation
    options: SearchOptions = field(default_factory=SearchOptions)
    batching: Batching = field(default_factory=Batching)
    long_lines: str = "split"
    max_source_length: int | None = None
    warn: Callable[[str], None] = lambda text: None
    name: str = "input"
    searches: int = 1

    def __post_init__(self) -> None:
        problems = [*self.options.problems(), *self.batching.problems()]
        longest = self.backend.max_source_length
        self.limit = longest if self.max_source_length is None else self.max_source_length
        if not MIN_SOURCE_LENGTH <= self.limit <= longest:
            problems.append(
                f"`--max-source-length` must be from {MIN_SOURCE_LENGTH} to {longest}, what the model takes, but is "
                f"{self.limit}"
            )
        if self.options.min_len > self.backend.max_target_length:
            problems.append(
                f"`--min-len` {self.options.min_len} is more than the {self.backend.max_target_length} pieces that the "
                "model can write"
            )
        if problems:
            raise InputError(problems)
        self.joint = " " if has_spaces(self.segmentation.target) else ""
        self.lines = 0
        """That have been translated until now, which tells the number of the next."""
        self.tokens = 0
        """Pieces of the best translations until now."""
        self.capped: list[int] = []
        """Numbers of the lines whose best translation has reached its length cap."""

    def translate(self, lines: Iterable[str], progress: Progress | None = None) -> Iterator[list[ScoredText]]:
        """Translates lines. No more of them are taken than a buffer holds before their translations are given.

        Args:
            lines: of text; of white space only are blank.
            progress: is told of each batch.

        Yields:
            For each line, in order, its best translations, best first: as many as ``options.nbest`` asks for, or fewer
            where the search found fewer; for a blank line one that is empty.
        """
        waiting = iter(lines)
        while buffer := list(itertools.islice(waiting, self.batching.buffer)):
            yield from self.translate_buffer(buffer, progress)

    def translate_buffer(self, lines: Sequence[str], progress: Progress | None = None) -> list[list[ScoredText]]:
        """Translates lines that are sorted by length together; see ``translate``."""
        first = self.lines + 1
        sources: list[list[str]] = []  # the pieces of every part of every line
        parts_of: list[list[int]] = []  # for each line, the numbers of its parts in `sources`
        for number, line in enumerate(lines, first):
            parts = self._parts(line, number)
            parts_of.append(list(range(len(sources), len(sources) + len(parts))))
            sources += parts
        waiting = [len(parts) for parts in parts_of]
        line_of = [n for n, parts in enumerate(parts_of) for _ in parts]
        if progress is not None:
            progress.advance(waiting.count(0))
        found: dict[int, list[Hypothesis]] = {}
        batches = list(self.batching.batches([len(pieces) for pieces in sources]))
        for batch, results in zip(batches, self._searched(sources, batches), strict=True):
            found.update(zip(batch, results, strict=True))
            for n in batch:
                waiting[line_of[n]] -= 1
            self.tokens += sum(len(best[0].pieces) for best in results)
            if progress is not None:
                progress.advance(sum(waiting[line] == 0 for line in {line_of[n] for n in batch}), self._rate(progress))
        self.lines += len(lines)
        self.capped += [
            number
            for number, numbers in enumerate(parts_of, first)
            if any(self._is_capped(len(sources[n]), found[n][0]) for n in numbers)
        ]
        return [self._joined([found[n] for n in numbers]) for numbers in parts_of]

    def _searched(
        self, sources: Sequence[Sequence[str]], batches: Sequence[Sequence[int]]
    ) -> Iterator[list[list[Hypothesis]]]:
        """The results of each batch, in order."""

        def search(batch: Sequence[int]) -> list[list[Hypothesis]]:
            return self.backend.search([sources[n] for n in batch], self.options)

        if self.searches == 1:
            yield from map(search, batches)
            return
        pool = ThreadPoolExecutor(self.searches)
        try:
            yield from pool.map(search, batches)
        finally:
            # what is being searched can't be stopped; what waits for its turn can
            pool.shutdown(wait=True, cancel_futures=True)

    def _parts(self, line: str, number: int) -> list[list[str]]:
        """The line as pieces, in as many parts as it takes; none for a blank line."""
        text = self.segmentation.clean(line)
        if not text:
            return []
        pieces = self._pieces(text)
        if len(pieces) <= self.limit:
            return [pieces]
        what = f"{self.name}, line {number}: {len(pieces):,} pieces, more than {self.limit:,}"
        if self.long_lines == "blank":
            self.warn(f"{what}: left blank")
            return []
        parts = [self._pieces(part) for part in split_to_fit(text, lambda part: len(self._pieces(part)), self.limit)]
        self.warn(f"{what}: translated in {len(parts)} parts")
        return parts

    def _pieces(self, text: str) -> list[str]:
        return self.segmentation.encode(text).split()

    def _joined(self, parts: Sequence[Sequence[Hypothesis]]) -> list[ScoredText]:
        """The n-th best of all parts make a translation of the line; these are given best first."""
        if not parts:
            return [ScoredText("", 0.0)]
        if len(parts) == 1:
            return [ScoredText(self._text(one), one.score) for one in parts[0]]
        joined = []
        for hypotheses in zip(*parts, strict=False):
            texts = [self._text(one) for one in hypotheses]
            length = sum(len(one.pieces) + 1 for one in hypotheses)
            score = sum(one.log_probability for one in hypotheses) / length**self.options.lenpen
            joined.append(ScoredText(self.joint.join(text for text in texts if text), score))
        return sorted(joined, key=lambda one: -one.score)

    def _text(self, hypothesis: Hypothesis) -> str:
        # no piece of ours holds a line end, but a dictionary from elsewhere may
        return self.segmentation.clean(self.segmentation.decode(" ".join(hypothesis.pieces)))

    def _is_capped(self, source: int, best: Hypothesis) -> bool:
        return len(best.pieces) >= min(self.options.cap(source), self.backend.max_target_length)

    def _rate(self, progress: Progress) -> str:
        return f"{self.tokens / max(progress.seconds_so_far(), 1e-9):,.0f} tokens/s"
