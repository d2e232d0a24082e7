"""Word alignments of parallel text, counted: how often a source symbol is linked to a target symbol."""

from __future__ import annotations

import importlib.util
import logging
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from owf_fairseq.errors import InputError
from owf_fairseq.shortlist.sentences import NumberedSentences, Numbers, Vocabulary, Words

_BLOCK = 10_000
"""Pairs whose links are counted together: some 20 MB."""


def check_aligner() -> None:
    """Says what to do where the aligner is not installed.

    Raises:
        InputError: it isn't.
    """
    if importlib.util.find_spec("eflomal") is None:
        raise InputError("the aligner eflomal is not installed: pip install '.[shortlist]'")


@dataclass(frozen=True)
class LinkCounts:
    """How often symbols are linked.

    Attributes:
        keys: ``source * symbols + target`` of each pair of symbols that is linked, ascending; ``symbols`` is how many
            the target vocabulary has.
        counts: for each of them.
    """

    keys: Numbers
    counts: Numbers

    @classmethod
    def of(cls, keys: Numbers) -> LinkCounts:
        """Counts links, by their keys."""
        unique, counts = np.unique(keys, return_counts=True)
        return cls(unique.astype(np.int64), counts.astype(np.int64))

    @classmethod
    def together(cls, parts: Iterable[LinkCounts]) -> LinkCounts:
        """The sum of counts."""
        some = list(parts)
        keys, place = np.unique(np.concatenate([part.keys for part in some]), return_inverse=True)
        weights = np.concatenate([part.counts for part in some])
        return cls(keys, np.bincount(place, weights, len(keys)).astype(np.int64))

    def best(self, symbols: int, number: int) -> LinkCounts:
        """For each source symbol the target symbols that it is linked to most often; of equals, the first.

        Args:
            symbols: of the target vocabulary.
            number: that are kept, at most.
        """
        source = self.keys // symbols
        order = np.lexsort((self.keys, -self.counts, source))  # the keys ascend: so do the sources in this order
        rank = np.arange(len(order)) - np.searchsorted(source, source)
        kept = np.sort(order[rank < number])
        return LinkCounts(self.keys[kept], self.counts[kept])


def count_links(
    source: NumberedSentences, target: NumberedSentences, languages: tuple[Vocabulary, Vocabulary]
) -> LinkCounts:
    """Aligns the pieces of sentences, by eflomal, and counts the links of both directions.

    Where pieces are linked, their whole words are: rare words are cut into many pieces, and which of them are linked to
    which is chance. So all pieces of two linked words count, once a direction.

    Args:
        source, target: they are aligned together.
        languages: theirs.
    """
    from eflomal import Aligner

    logging.getLogger("eflomal").setLevel(logging.WARNING)
    words = languages[0].words(source), languages[1].words(target)
    found = LinkCounts.of(np.empty(0, np.int64))
    with tempfile.TemporaryDirectory(prefix="owf-shortlist-") as folder:
        directions = [Path(folder) / name for name in ("forward", "reverse")]
        # Numbers for words: eflomal takes two pieces for one that differ in case only. Fertilities, and three samplers
        # instead of one, take three times as long, and cover no more of a validation set (Multi30k's: 97.8 %).
        Aligner(model=2, n_samplers=1).align(source.lines(), target.lines(), *map(str, directions))
        for path in directions:
            with open(path, encoding="ascii") as lines:
                for links in _links(lines, source, target):
                    places = _of_linked_words(links, *words)
                    keys = source.tokens[places[0]] * len(languages[1]) + target.tokens[places[1]]
                    found = LinkCounts.together([found, LinkCounts.of(keys)])
    return found


def _links(lines: Iterable[str], source: NumberedSentences, target: NumberedSentences) -> Iterator[Numbers]:
    """The links of a direction, (2, L), by the places of tokens in all sentences, for some sentences at a time.

    Args:
        lines: one for each pair, as ``0-0 1-2``.
        source, target: all sentences.
    """
    rest, first = iter(lines), 0
    while block := list(islice(rest, _BLOCK)):
        within = np.array(" ".join(block).replace("-", " ").split(), np.int64).reshape(-1, 2).T
        pair = np.repeat(np.arange(first, first + len(block)), [line.count("-") for line in block])
        yield within + np.stack([source.starts[pair], target.starts[pair]])
        first += len(block)


def _of_linked_words(links: Numbers, source: Words, target: Words) -> tuple[Numbers, Numbers]:
    """The places of all pairs of pieces whose words are linked, each once."""
    many = len(target.begins)
    first, second = np.divmod(np.unique(source.of[links[0]] * many + target.of[links[1]]), many)
    sizes = source.lengths[first] * target.lengths[second]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    columns = np.repeat(target.lengths[second], sizes)
    return (
        np.repeat(source.begins[first], sizes) + within // columns,
        np.repeat(target.begins[second], sizes) + within % columns,
    )
