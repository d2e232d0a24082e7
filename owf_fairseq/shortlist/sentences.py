"""Many sentences as numbers of symbols, and the words that their pieces make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from owf_fairseq.data.languages import has_spaces

Numbers = NDArray[np.int64]

_SPACE = "\u2581"
"""Begins the first piece of a word, of SentencePiece's."""
_GOES_ON = "@@"
"""Ends a piece that is not the last of its word, of subword-nmt's."""
_LONGEST_WORD = 10
"""Pieces: what has more is an address, or text without spaces, and its pieces have little to do with each other."""


@dataclass(frozen=True)
class NumberedSentences:
    """Sentences, one after the other.

    Attributes:
        tokens: of all, without end-of-sentence symbols.
        starts: where each begins, and where the last ends.
    """

    tokens: Numbers
    starts: Numbers

    @classmethod
    def of(cls, sentences: Iterable[Sequence[int] | Numbers]) -> NumberedSentences:
        """Puts sentences together."""
        arrays = [np.asarray(sentence, np.int64) for sentence in sentences]
        starts = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        return cls(np.concatenate(arrays) if arrays else np.empty(0, np.int64), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def lines(self) -> Iterator[str]:
        """Each as a line of numbers."""
        for start, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield " ".join(map(str, self.tokens[start:end].tolist()))


@dataclass(frozen=True)
class Words:
    """The words of sentences.

    Attributes:
        of: for each token, the number of its word.
        begins: for each word, the place of its first token.
        lengths: its tokens.
    """

    of: Numbers
    begins: Numbers
    lengths: Numbers


class Vocabulary:
    """The symbols of a language.

    Args:
        symbols: of its dictionary, in order.
        lang: where words are not written with spaces between them, each piece is a word.
    """

    def __init__(self, symbols: Sequence[str], lang: str) -> None:
        self.symbols = symbols
        begin = np.array([symbol.startswith(_SPACE) for symbol in symbols])
        goes_on = np.array([symbol.endswith(_GOES_ON) for symbol in symbols])
        self._begins = begin if begin.any() and has_spaces(lang) else None
        self._goes_on = goes_on if self._begins is None and has_spaces(lang) else np.zeros(len(symbols), bool)

    def __len__(self) -> int:
        return len(self.symbols)

    def words(self, sentences: NumberedSentences) -> Words:
        """The words of sentences of this language."""
        if self._begins is not None:
            starts = self._begins[sentences.tokens]
        else:
            starts = np.concatenate([[True], ~self._goes_on[sentences.tokens]])[: len(sentences.tokens)]
        first = sentences.starts[:-1]
        starts[first[first < len(starts)]] = True
        of = np.cumsum(starts) - 1
        starts |= np.bincount(of)[of] > _LONGEST_WORD
        begins = np.flatnonzero(starts)
        return Words(np.cumsum(starts) - 1, begins, np.diff(np.append(begins, len(starts))))

    @staticmethod
    def bare(symbol: str) -> str:
        """A piece without what marks its place in a word."""
        return symbol.removeprefix(_SPACE).removesuffix(_GOES_ON)

    @classmethod
    def spellings(cls, symbol: str) -> set[str]:
        """The pieces that a piece may be copied as: at the start of a word, inside of it, and at its end."""
        bare = cls.bare(symbol)
        return {symbol, bare, _SPACE + bare, bare + _GOES_ON} - {"", _SPACE, _GOES_ON}
