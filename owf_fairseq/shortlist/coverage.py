"""How much of real translations a shortlist lets through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from owf_fairseq.decoding.vocabulary_map import VocabularyMap


@dataclass(frozen=True)
class Coverage:
    """Of sentences and their references.

    Attributes:
        sentences: how many. whole: whose references are in their shortlists as a whole.
        tokens: of the references, without end-of-sentence symbols. covered: that are in their sentence's shortlist.
        symbols: of a sentence's shortlist, in the mean.
        vocabulary: symbols that there are.
    """

    sentences: int
    whole: int
    tokens: int
    covered: int
    symbols: float
    vocabulary: int

    @property
    def share(self) -> float:
        """Of the tokens that are covered."""
        return self.covered / max(self.tokens, 1)


def cover(shortlist: VocabularyMap, pairs: Iterable[tuple[Sequence[str], Sequence[str]]], vocabulary: int) -> Coverage:
    """Looks up each source, and its reference in what is found.

    Args:
        shortlist: of the two languages.
        pairs: of sentences as pieces.
        vocabulary: symbols of the target language.
    """
    sentences = whole = tokens = covered = symbols = 0
    for source, target in pairs:
        allowed = shortlist.candidates(source)
        found = sum(piece in allowed for piece in target)
        sentences += 1
        whole += found == len(target)
        tokens += len(target)
        covered += found
        symbols += len(allowed)
    return Coverage(sentences, whole, tokens, covered, symbols / max(sentences, 1), vocabulary)
