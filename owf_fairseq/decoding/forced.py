"""Forced decoding: what a model makes of a translation that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor


def numbers(dictionary: Dictionary, pieces: Sequence[str]) -> Tensor:
    """The numbers of pieces and the end-of-sentence symbol, (T,); unknown ones have the number of ``<unk>``."""
    known, unknown = dictionary.indices, dictionary.unk()
    return torch.tensor([*(known.get(piece, unknown) for piece in pieces), dictionary.eos()])


@torch.inference_mode()
def log_probabilities(model: Any, source: Tensor, target: Tensor) -> Tensor:
    """The natural logarithm of every symbol's probability at every token of a target, given source and tokens before.

    Args:
        model: fairseq's encoder-decoder model or our decoder-only one, in eval mode.
        source: (S,), ended by the end-of-sentence symbol.
        target: (T,), likewise; the symbol is also what a target starts with.

    Returns:
        (T, V), in the model's precision, float32 at least.
    """
    before = torch.cat([target[-1:], target[:-1]])[None]
    logits: Tensor = model(source[None], torch.tensor([len(source)]), before)[0][0]
    # not fairseq's `get_normalized_probs`, which rounds a model in float64 to float32
    return logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def token_log_probabilities(model: Any, source: Tensor, target: Tensor) -> Tensor:
    """Those of the target's own tokens, (T,); see ``log_probabilities``."""
    return of_tokens(log_probabilities(model, source, target), target)


def of_tokens(of_symbols: Tensor, target: Tensor) -> Tensor:
    """Of (T, V), what is the target's own, (T,)."""
    return of_symbols.gather(1, target[:, None])[:, 0]
