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
def token_log_probabilities(model: Any, source: Tensor, target: Tensor) -> Tensor:
    """The natural logarithm of every target token's probability, given the source and the tokens before it.

    Args:
        model: fairseq's encoder-decoder model or our decoder-only one, in eval mode.
        source: (S,), ended by the end-of-sentence symbol.
        target: (T,), likewise; the symbol is also what a target starts with.

    Returns:
        (T,), in float32.
    """
    before = torch.cat([target[-1:], target[:-1]])[None]
    output = model(source[None], torch.tensor([len(source)]), before)
    log_probabilities: Tensor = model.get_normalized_probs(output, log_probs=True)[0]
    return log_probabilities.float().gather(1, target[:, None])[:, 0]
