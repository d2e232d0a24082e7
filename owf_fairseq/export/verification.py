"""Whether an exported model computes what the checkpoint does: token by token, on real sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary

from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend
from owf_fairseq.decoding.forced import numbers, token_log_probabilities
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.errors import InputError
from owf_fairseq.progress import Progress

THRESHOLDS = {
    "float32": 1e-4,
    "float16": 0.05,
    "bfloat16": 0.5,
    "int8": 2.0,
    "int8_float32": 2.0,
    "int8_float16": 2.0,
    "int8_bfloat16": 2.0,
}
"""By precision of the weights, the largest difference of a token's log-probability (natural) that rounding explains."""

MEAN_THRESHOLD_SHARE = 0.1
"""The mean difference may be this share of the largest that is allowed: one odd token is rounding, many are not."""


@dataclass(frozen=True)
class Verification:
    """How far the log-probabilities (natural) of fairseq and of the exported model are apart.

    Attributes:
        sentences: that were translated.
        tokens: of the translations, end-of-sentence symbols included.
        largest, mean: absolute difference of a token's log-probability.
        threshold: for the largest; see ``THRESHOLDS`` and ``MEAN_THRESHOLD_SHARE``.
        compute_type: what CTranslate2 computed in; it is wider than the weights where this device can't do theirs.
    """

    sentences: int
    tokens: int
    largest: float
    mean: float
    threshold: float
    compute_type: str

    @property
    def passed(self) -> bool:
        """Whether rounding explains the difference; NaN is never explained."""
        return self.largest <= self.threshold and self.mean <= self.threshold * MEAN_THRESHOLD_SHARE

    def __str__(self) -> str:
        return (
            f"largest difference of a token's log-probability {self.largest:.2g}, mean {self.mean:.2g} (allowed "
            f"{self.threshold:g} and {self.threshold * MEAN_THRESHOLD_SHARE:g}), {self.tokens:,} tokens of "
            f"{self.sentences:,} sentences, computed in {self.compute_type}"
        )


def verify(
    model: Any, source: Dictionary, target: Dictionary, backend: CTranslate2Backend, sentences: Sequence[Sequence[str]]
) -> Verification:
    """Translates with the exported model, and compares what both make of every token of the translations.

    Args:
        model: of the checkpoint, on the CPU, in eval mode.
        source, target: its dictionaries.
        backend: the exported model.
        sentences: as pieces, without end-of-sentence symbols.
    """
    differences = []
    with Progress("sentences", len(sentences), label="verification") as progress:
        for pieces in sentences:
            ((best, *_),) = backend.search([pieces], SearchOptions())
            (scored,) = backend.translator.score_batch([list(pieces)], [list(best.pieces)], max_input_length=0)
            expected = token_log_probabilities(model, numbers(source, pieces), numbers(target, best.pieces))
            differences.append((expected - torch.tensor(scored.log_probs)).abs())
            progress.advance(1)
    all_of_them = torch.cat(differences)
    return Verification(
        len(sentences),
        len(all_of_them),
        all_of_them.max().item(),
        all_of_them.mean().item(),
        THRESHOLDS[backend.exported.record["quantization"]],
        backend.translator.compute_type,
    )


def check(verification: Verification) -> None:
    """Refuses a model that does not compute what the checkpoint does.

    Raises:
        InputError: with the differences.
    """
    if not verification.passed:
        raise InputError(
            f"the exported model does not compute what the checkpoint does: {verification}; nothing was written. "
            "Another `--quantization` keeps more (float32 keeps all); if float32 fails too, please report it"
        )
