"""A shortlist in an exported folder: whether it is one of the model's, and whether CTranslate2 keeps to it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary

from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend
from owf_fairseq.decoding.forced import log_probabilities, numbers, of_tokens
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.decoding.vocabulary_map import VocabularyMap
from owf_fairseq.errors import InputError
from owf_fairseq.export.ctranslate2_spec import normalised_twice
from owf_fairseq.files.lines import PathLike
from owf_fairseq.progress import Progress

_MOST_FOREIGN = 5
"""Symbols that are named."""


@dataclass(frozen=True)
class ShortlistVerification:
    """What CTranslate2 makes of a shortlist.

    Attributes:
        sentences: that were translated.
        symbols: of a sentence's shortlist, in the mean; ``vocabulary``: that there are.
        tokens: of all hypotheses. outside: that are not in their sentence's shortlist.
        hypotheses: whose scores were compared: those that were not cut off at their length cap.
        largest: difference of a score from fairseq's, with probabilities normalised over the shortlist: natural
            logarithms, per token.
        threshold: for it.
    """

    sentences: int
    symbols: float
    vocabulary: int
    tokens: int
    outside: int
    hypotheses: int
    largest: float
    threshold: float

    @property
    def passed(self) -> bool:
        """Whether the search is one that is restricted to the shortlist; NaN never is."""
        return self.outside == 0 and self.largest <= self.threshold

    def __str__(self) -> str:
        return (
            f"{self.outside} of {self.tokens:,} tokens outside of the shortlist, which has {self.symbols:,.0f} of "
            f"{self.vocabulary:,} symbols in the mean; largest difference of a score {self.largest:.2g} per token "
            f"(allowed {self.threshold:.2g}), {self.hypotheses:,} hypotheses of {self.sentences:,} sentences"
        )


def read_shortlist(path: PathLike, source: Dictionary, target: Dictionary) -> VocabularyMap:
    """Reads a shortlist for a model.

    Args:
        path: of the file.
        source, target: the model's dictionaries.

    Raises:
        InputError: it is none, or it has symbols that the model does not have: CTranslate2 would take them for
            ``<unk>``.
    """
    found = VocabularyMap.read(path)
    pieces = (piece for ngram in found.by_source for piece in ngram.split(" "))
    problems = []
    for side, symbols, dictionary in (("source", pieces, source), ("target", found.targets(), target)):
        foreign = sorted({symbol for symbol in symbols if symbol not in dictionary.indices})
        if foreign:
            named = ", ".join(foreign[:_MOST_FOREIGN]) + (", ..." if len(foreign) > _MOST_FOREIGN else "")
            problems.append(
                f"`--shortlist` {path} has {len(foreign)} symbols that are not in the model's {side} dictionary "
                f"({named}): make it of the data that the model was trained on, with `owf shortlist`"
            )
    if problems:
        raise InputError(problems)
    return found


def verify_shortlist(
    model: Any,
    source: Dictionary,
    target: Dictionary,
    backend: CTranslate2Backend,
    sentences: Sequence[Sequence[str]],
    threshold: float,
) -> ShortlistVerification:
    """Translates with the shortlist, and compares with what fairseq computes where it is restricted likewise.

    Args:
        model: of the checkpoint, on the CPU, in eval mode, in float32.
        source, target: its dictionaries.
        backend: the exported model, with a shortlist.
        sentences: as pieces, without end-of-sentence symbols.
        threshold: difference of a token's log-probability that rounding explains, see ``verification.verify``.
    """
    assert backend.shortlist is not None
    exact = copy.deepcopy(model).double()
    # an empty translation is not ruled out: CTranslate2 would normalise probabilities without it
    options = SearchOptions(nbest=5, min_len=0)
    symbols, tokens, outside, differences = 0, 0, 0, []
    with (
        Progress("sentences", len(sentences), label="verification of the shortlist") as progress,
        normalised_twice(exact),
    ):
        for pieces in sentences:
            allowed = backend.shortlist.candidates(pieces)
            symbols += len(allowed)
            ruled_out = torch.full((len(target),), -torch.inf, dtype=torch.float64)
            ruled_out[[target.index(symbol) for symbol in allowed]] = 0
            cap = min(options.cap(len(pieces)), backend.max_target_length)
            for found in backend.search([pieces], options)[0]:
                tokens += len(found.pieces)
                inside = all(piece in allowed for piece in found.pieces)
                outside += 0 if inside else sum(piece not in allowed for piece in found.pieces)
                if inside and len(found.pieces) < cap:
                    pair = numbers(source, pieces), numbers(target, found.pieces)
                    expected = of_tokens((log_probabilities(exact, *pair) + ruled_out).log_softmax(-1), pair[1]).sum()
                    differences.append(abs(found.log_probability - expected.item()) / len(pair[1]))
            progress.advance(1)
    return ShortlistVerification(
        len(sentences),
        symbols / len(sentences),
        len(target),
        tokens,
        outside,
        len(differences),
        max(differences, default=0.0),
        threshold,
    )


def check_shortlist(verification: ShortlistVerification) -> None:
    """Refuses a model whose translations are not those of a search that is restricted to the shortlist.

    Raises:
        InputError: with the differences.
    """
    if not verification.passed:
        raise InputError(
            f"with the shortlist, the exported model does not search as it should: {verification}; nothing was "
            "written. Please report it, and export without `--shortlist` until then"
        )
