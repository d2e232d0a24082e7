"""The steps from checked files to fairseq's folders, each of which goes on where it was interrupted."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from owf_fairseq.data.chunks import (
    DICTIONARY,
    SEGMENTATION_FOLDER,
    Binarized,
    Checked,
    Encoded,
    binarize,
    check_chunk,
    encode,
)
from owf_fairseq.data.corpus import Corpus
from owf_fairseq.data.recorded_segmentation import Recorded
from owf_fairseq.data.segmentation import SPECIALS, Segmentation, clean
from owf_fairseq.data.shards import Shard, make_shard
from owf_fairseq.data.train_segmentation import Learning, TrainingText, learn_segmentation
from owf_fairseq.data.work import Workers
from owf_fairseq.errors import InputError
from owf_fairseq.files.line_index import index_lines
from owf_fairseq.files.lines import atomic_path, stream_lines, write_lines
from owf_fairseq.files.work_folder import WorkFolder
from owf_fairseq.progress import Progress

_BYTES_A_PAIR = 80
"""What fairseq-train holds of the shard that it trains on while it loads the next (measured: 75)."""
_LARGE_SHARD = 100_000_000
"""Pairs from which on that is worth a word."""
_PADDING_FACTOR = 8
_COUNTED = 10_000
"""Lines between two looks at the progress."""


@dataclass(frozen=True)
class Prepared:
    """What `prepare` made.

    Attributes:
        source: source language.
        target: target language.
        vocabulary: size of the dictionary, specials included.
        pairs: for each split, its pairs.
        tokens: for each split and language, as `train.en`, its pieces, without end-of-sentence symbols.
        unknown: for each split and language, its pieces that are not in the dictionary.
        dropped: pairs of the training data that were left out, because a side was empty.
        shards: training pairs of each shard, by the name of its folder; the name of a single one is `.`.
    """

    source: str
    target: str
    vocabulary: int
    pairs: dict[str, int]
    tokens: dict[str, int]
    unknown: dict[str, int]
    dropped: int
    shards: dict[str, int]


@dataclass(frozen=True)
class Preparation:
    """The work on one corpus.

    Attributes:
        corpus: the files.
        learning: how the segmentation is learnt, unless it is taken over.
        recorded: the segmentation to take over.
        shards: what to make.
        work: keeps what is done.
        workers: do it.
    """

    corpus: Corpus
    learning: Learning
    recorded: Recorded | None
    shards: list[Shard]
    work: WorkFolder
    workers: Workers

    def run(self) -> Prepared:
        """Do all steps that aren't done yet, until all shards are in the working folder.

        Raises:
            InputError: what is wrong with the text, all together.
        """
        with self.work.useless_after(InputError):
            checked = self._check()
            self._make_segmentation()
        chunks = [(chunk, (self.work.path,)) for chunk in self.corpus.chunks]
        encoded = self.workers.each(self.work, encode, Encoded, chunks, "cutting into pieces")
        self._make_dictionary()
        binarized = self.workers.each(self.work, binarize, Binarized, chunks, "writing binary data")
        self.workers.stop()
        with Progress("pairs", sum(chunk.count for chunk in self.corpus.chunks), label="making shards") as progress:
            for shard in self.shards:
                make_shard(shard, self.work.path)
                progress.advance(sum(chunk.count for chunk in shard.chunks))
        source, target = self.corpus.langs
        counted: dict[str, Counter[str]] = {"tokens": Counter(), "unknown": Counter()}
        pairs: Counter[str] = Counter()
        for chunk in self.corpus.chunks:
            pairs[chunk.split] += checked[chunk.number].kept
            for side, lang in enumerate(self.corpus.langs):
                counted["tokens"][f"{chunk.split}.{lang}"] += encoded[chunk.number].tokens[side]
                counted["unknown"][f"{chunk.split}.{lang}"] += binarized[chunk.number].unknown[side]
        return Prepared(
            source=source,
            target=target,
            vocabulary=len(SPECIALS) + sum(1 for _ in stream_lines(self.work.path / DICTIONARY)),
            pairs=dict(pairs),
            tokens=dict(counted["tokens"]),
            unknown=dict(counted["unknown"]),
            dropped=sum(checked[chunk.number].empty for chunk in self.corpus.of("train")),
            shards=self._pairs_of_shards(checked),
        )

    def _check(self) -> dict[int, Checked]:
        kind = self.recorded.kind if self.recorded else self.learning.kind
        draws = self.recorded is None and not self.learning.segmentation_text and kind != "none"
        quotas = self.corpus.quotas(self.learning.sample) if draws else {}
        tasks = [(chunk, (kind, quotas.get(chunk.number, 0), self.work.path)) for chunk in self.corpus.chunks]
        checked = self.workers.each(self.work, check_chunk, Checked, tasks, "checking the text")
        problems = self.corpus.problems(checked)
        pairs = self._pairs_of_shards(checked)
        if not problems and not all(pairs.values()):
            problems.append(f"`--shards` {len(pairs)}: there are only {sum(pairs.values())} training pairs with text")
        if problems:
            raise InputError(problems)
        if max(pairs.values()) > _LARGE_SHARD:
            print(
                f"{max(pairs.values()):,} training pairs in one folder: each process of fairseq-train will hold about "
                f"{max(pairs.values()) * _BYTES_A_PAIR / 1e9:.0f} GB for them; `--shards` makes it less",
                file=sys.stderr,
            )
        return checked

    def _pairs_of_shards(self, checked: Mapping[int, Checked]) -> dict[str, int]:
        return {shard.name: sum(checked[chunk.number].kept for chunk in shard.train) for shard in self.shards}

    def _make_segmentation(self) -> None:
        if (self.work.path / SEGMENTATION_FOLDER).exists():
            return
        with atomic_path(self.work.path / SEGMENTATION_FOLDER) as folder:
            folder.mkdir()
            if self.recorded is not None:
                self.recorded.copy(folder, *self.corpus.langs)
                return
            files = self.learning.segmentation_text
            total = 2 * min(self.corpus.lines("train"), self.learning.sample)
            total = sum(index_lines(path).lines for path in files) if files else total
            with Progress("lines", total, label="learning the segmentation") as progress:
                sides = [self._sample(lang) for lang in self.corpus.langs]
                sides = [(clean(line) for line in stream_lines(path)) for path in files] or sides
                text = TrainingText(*self.corpus.langs, tuple(_counted(side, progress) for side in sides))
                learn_segmentation(folder, text, self.learning)

    def _sample(self, lang: str) -> Iterator[str]:
        """The text of a language that was drawn."""
        paths = (chunk.file(self.work.path, lang, "sample") for chunk in self.corpus.of("train"))
        return (line for path in paths if path.exists() for line in stream_lines(path))

    def _make_dictionary(self) -> None:
        path = self.work.path / DICTIONARY
        if path.exists():
            return
        if self.recorded is not None:
            write_lines(path, stream_lines(self.recorded.dictionary))
            return
        model = Segmentation.load(self.work.path / SEGMENTATION_FOLDER)
        # BPE has its own number, that of the merges, and each of its pieces can be written
        size = None if self.learning.segmentation == "moses-bpe" else self.learning.vocab_size
        with Progress("lines", 2 * self.corpus.lines("train"), label="counting pieces") as progress:
            parts = (
                chunk.file(self.work.path, lang) for lang in self.corpus.langs for chunk in self.corpus.of("train")
            )
            symbols = model.symbols(_counted((line for part in parts for line in stream_lines(part)), progress), size)
        # The second column is a count, which nothing here uses: the pieces are in order already.
        write_lines(path, (f"{symbol} 1" for symbol in padded(symbols)))


def padded(symbols: list[str]) -> list[str]:
    """Fill a dictionary up to a multiple of 8, as fairseq-preprocess does: half-precision products like it.

    Args:
        symbols: without fairseq's specials, which count.
    """
    return [*symbols, *(f"madeupword{n:04d}" for n in range(-(len(SPECIALS) + len(symbols)) % _PADDING_FACTOR))]


def _counted(lines: Iterable[str], progress: Progress) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        yield line
        if number % _COUNTED == 0:
            progress.advance(_COUNTED)
