"""From counts to a shortlist: which target symbols a source symbol may become."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from owf_fairseq.data.segmentation import SPECIALS
from owf_fairseq.decoding.vocabulary_map import VocabularyMap
from owf_fairseq.errors import too_small
from owf_fairseq.shortlist.alignment import LinkCounts
from owf_fairseq.shortlist.sentences import Numbers, Vocabulary


@dataclass(frozen=True)
class ShortlistOptions:
    """What is in a shortlist.

    Attributes:
        best: target symbols for each source symbol: those that it is linked to most often, and so with the highest
            probability.
        frequent: target symbols that any translation may have, the most frequent ones.
        pairs: of the training data that are aligned, taken evenly from all.
    """

    best: int = 300
    frequent: int = 200
    pairs: int = 5_000_000

    def problems(self) -> list[str]:
        """What is wrong with the values, a sentence each, naming the flags."""
        return [problem for name, value in vars(self).items() for problem in too_small(f"--{name}", value)]


def select(
    links: LinkCounts, frequency: Numbers, source: Vocabulary, target: Vocabulary, options: ShortlistOptions
) -> VocabularyMap:
    """Chooses symbols.

    Any translation may have the most frequent symbols, and digits and punctuation. A source symbol may become what it
    is linked to most often, and itself, as names and numbers do: as the start, the inside or the end of a word. Symbols
    that the target side never has are left out.

    Args:
        links: of the two languages' symbols.
        frequency: of target symbols.
        source, target: the languages.
        options: how many.
    """
    seen = {target.symbols[n]: n for n in np.flatnonzero(frequency).tolist() if target.symbols[n] not in SPECIALS}
    frequent = sorted(seen, key=lambda symbol: (-frequency[seen[symbol]], symbol))[: options.frequent]
    always = {*frequent, *filter(is_sign, seen)}
    chosen = defaultdict(set)
    for key in links.best(len(target), options.best).keys.tolist():
        first, second = divmod(key, len(target))
        chosen[source.symbols[first]].add(target.symbols[second])
    for symbol in source.symbols:
        chosen[symbol] |= Vocabulary.spellings(symbol)
    by_source = {
        symbol: tuple(sorted((found & seen.keys()) - always))
        for symbol, found in chosen.items()
        if symbol not in SPECIALS
    }
    # a source piece that only has what any translation may have needs no line
    return VocabularyMap(frozenset(always), {symbol: found for symbol, found in by_source.items() if found})


def is_sign(symbol: str) -> bool:
    """Whether a piece is a digit, a punctuation mark or another sign that is no letter, wherever it is in a word."""
    bare = Vocabulary.bare(symbol)
    return len(bare) == 1 and unicodedata.category(bare)[0] in "NPS"
