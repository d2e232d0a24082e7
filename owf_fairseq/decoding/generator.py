"""fairseq's beam search, with a length cap for each sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor, nn

Cap = Callable[[int], int]


class CappedEnsemble(EnsembleModel):
    """fairseq's ensemble, whose sentences can do nothing but end when they have reached their cap.

    fairseq computes one cap for a batch, from its longest source. The encoder's output carries every sentence's own
    length through all reordering of beams and sentences; that is where the caps come from.

    Args:
        models: to decode with.
        eos: number of the end-of-sentence symbol.
        cap: the most pieces of a translation, for a number of source pieces.
        beam: rows of a sentence in a batch.
    """

    def __init__(self, models: Sequence[nn.Module], eos: int, cap: Cap, beam: int) -> None:
        super().__init__(list(models))
        self.eos = eos
        self.cap = cap
        self.beam = beam
        self.caps: list[int] = []
        """Of each sentence that is still in the batch."""

    def forward_decoder(self, tokens: Tensor, encoder_outs: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's; ``tokens`` are (sentences x beam, step + 1)."""
        log_probs, attention = super().forward_decoder(tokens, encoder_outs, *args, **kwargs)
        lengths = encoder_outs[0]["src_lengths"][0].flatten()[:: self.beam].tolist()
        self.caps = [self.cap(length - 1) for length in lengths]
        step = tokens.size(1) - 1
        if any(step >= cap for cap in self.caps):
            over = torch.tensor([step >= cap for cap in self.caps], device=tokens.device)
            not_eos = torch.arange(log_probs.size(1), device=tokens.device) != self.eos
            log_probs.masked_fill_(over.repeat_interleave(self.beam)[:, None] & not_eos, -torch.inf)
        return log_probs, attention


class CappedGenerator(SequenceGenerator):
    """fairseq's beam search over a ``CappedEnsemble``: a sentence is finished when it is at its cap."""

    def is_finished(
        self, step: int, unfin_idx: int, max_len: int, finalized_sent_len: int, beam_size: int
    ) -> bool:  # fairseq's names
        """Whether a sentence, the ``unfin_idx``-th that is still in the batch, needs no further step."""
        return finalized_sent_len == beam_size or step >= self.model.caps[unfin_idx]
