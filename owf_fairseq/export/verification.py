"""Whether an exported model computes what the checkpoint does: token by token, on real sentences.

In float32 the bounds come from the model at hand. How far rounding takes it is measured on the checkpoint's own model,
in float32 and in float64. What the exported model does otherwise by its structure, the layer norms that it applies
twice (see ``ctranslate2_spec``), the float64 model does too: nothing but rounding may be left between the two.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend
from owf_fairseq.decoding.forced import log_probabilities, numbers, of_tokens, token_log_probabilities
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.errors import InputError
from owf_fairseq.export.ctranslate2_spec import normalised_twice
from owf_fairseq.progress import Progress

THRESHOLDS = {
    "float32": 1e-5,
    "float16": 0.05,
    "bfloat16": 0.5,
    "int8": 2.0,
    "int8_float32": 2.0,
    "int8_float16": 2.0,
    "int8_bfloat16": 2.0,
}
"""By precision of the weights, a difference of a token's log-probability (natural) that rounding always explains."""

MEAN_THRESHOLD_SHARE = 0.1
"""The mean difference may be this share of that: one odd token is rounding, many are not."""

MEAN_THRESHOLD_INT8 = 0.5
"""For int8 in place of the share. Processors with AVX2 alone add products in 16 bits, which saturate: 0.33 was seen of
a model that had hardly learnt. A mistake in the structure shows in float32, which is looked at first."""

ROUNDING = 5
"""Times the rounding of fairseq in float32, largest and mean, that an exported model's may be. Measured on
random models, post-norm and pre-norm, of tiny to base size with 40 to 32,000 symbols: 0.8 to 1.7."""

AT_MOST = 0.01
"""Neither rounding in float32 nor layer norms that are applied twice may change a log-probability by more: a hundredth
of a probability. A model in which they do is served wrongly, whatever the reason."""


@dataclass(frozen=True)
class Verification:
    """How far the log-probabilities (natural) of fairseq and of the exported model are apart.

    Attributes:
        sentences: that were translated.
        tokens: of the translations, end-of-sentence symbols included.
        largest, mean: absolute difference of a token's log-probability.
        epsilon: how much of the largest is explained by layer norms that are applied twice.
        unexplained, mean_unexplained: as ``largest`` and ``mean``, from a model that applies those norms twice too.
        threshold, mean_threshold: for them.
        compute_type: what CTranslate2 computed in; it is wider than the weights where this device can't do theirs.
    """

    sentences: int
    tokens: int
    largest: float
    mean: float
    epsilon: float
    unexplained: float
    mean_unexplained: float
    threshold: float
    mean_threshold: float
    compute_type: str

    @property
    def passed(self) -> bool:
        """Whether rounding and epsilon explain the difference; NaN is never explained."""
        return (
            self.unexplained <= self.threshold
            and self.mean_unexplained <= self.mean_threshold
            and self.epsilon <= AT_MOST
        )

    def __str__(self) -> str:
        twice = f"; {self.epsilon:.2g} by the epsilon of layer norms that are applied twice" if self.epsilon else ""
        return (
            f"largest difference of a token's log-probability {self.largest:.2g}, mean {self.mean:.2g}{twice} "
            f"(by rounding {self.unexplained:.2g} and {self.mean_unexplained:.2g}, allowed {self.threshold:.2g} and "
            f"{self.mean_threshold:.2g}), {self.tokens:,} tokens of {self.sentences:,} sentences, computed in "
            f"{self.compute_type}"
        )


def verify(
    model: Any, source: Dictionary, target: Dictionary, backend: CTranslate2Backend, sentences: Sequence[Sequence[str]]
) -> Verification:
    """Translates with the exported model, and compares what both make of every token of the translations.

    Args:
        model: of the checkpoint, on the CPU, in eval mode, in float32.
        source, target: its dictionaries.
        backend: the exported model.
        sentences: as pieces, without end-of-sentence symbols.
    """
    exact = copy.deepcopy(model).double()
    exported, expected, doubled, rounding = [], [], [], _Rounding()
    with Progress("sentences", len(sentences), label="verification") as progress:
        for pieces in sentences:
            ((best, *_),) = backend.search([pieces], SearchOptions())
            (scored,) = backend.translator.score_batch([list(pieces)], [list(best.pieces)], max_input_length=0)
            exported.append(torch.tensor(scored.log_probs, dtype=torch.float64))
            pair = numbers(source, pieces), numbers(target, best.pieces)
            of_symbols = log_probabilities(exact, *pair)
            # of all symbols, so that a few lucky tokens don't set the bound
            rounding.add((log_probabilities(model, *pair) - of_symbols).abs())
            expected.append(of_tokens(of_symbols, pair[1]))
            with normalised_twice(exact):
                doubled.append(token_log_probabilities(exact, *pair))
            progress.advance(1)
    different, unexplained = ((torch.cat(exported) - torch.cat(theirs)).abs() for theirs in (expected, doubled))
    quantization = backend.exported.record["quantization"]
    always = THRESHOLDS[quantization]
    always_mean = MEAN_THRESHOLD_INT8 if quantization.startswith("int8") else always * MEAN_THRESHOLD_SHARE
    return Verification(
        len(sentences),
        len(different),
        different.max().item(),
        different.mean().item(),
        (torch.cat(doubled) - torch.cat(expected)).abs().max().item(),
        unexplained.max().item(),
        unexplained.mean().item(),
        max(always, min(ROUNDING * rounding.largest, AT_MOST)),
        max(always_mean, min(ROUNDING * rounding.total / rounding.number, AT_MOST)),
        backend.translator.compute_type,
    )


@dataclass
class _Rounding:
    """Of differences that are not kept: there are as many as symbols for each token."""

    largest: float = 0.0
    total: float = 0.0
    number: int = 0

    def add(self, differences: Tensor) -> None:
        self.largest = max(self.largest, differences.max().item())
        self.total += differences.sum().item()
        self.number += differences.numel()


def check_verification(verification: Verification) -> None:
    """Refuses a model that does not compute what the checkpoint does.

    Raises:
        InputError: with the differences.
    """
    if not verification.passed:
        raise InputError(
            f"the exported model does not compute what the checkpoint does: {verification}; nothing was written. "
            "Another `--quantization` keeps more (float32 keeps all); if float32 fails too, please report it"
        )
