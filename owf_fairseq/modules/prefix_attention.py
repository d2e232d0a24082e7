"""Self-attention of a decoder-only model: target positions see the whole source, and of the target what is before them.

Source and target are one sequence (a prefix language model: Raffel et al., 2020, cited in the paper's Section 3), but
they are read one after the other. The source's keys and values are computed once, and all target positions, all steps
and all beams of a sentence use them where they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from owf_fairseq.modules.attention import IncrementalState


class Source(NamedTuple):
    """What a layer keeps of the source.

    Attributes:
        keys, values: (N, H, S, D), of N sentences, H heads of D dimensions.
        padding: (N, S), true at padding; None where there is none.
    """

    keys: Tensor
    values: Tensor
    padding: Tensor | None


class PrefixSelfAttention(MultiheadAttention):
    """fairseq's attention, its parameters and cache, over a sequence whose start may be given as keys and values."""

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of positions: (T, B, C) to (B, H, T, D) each."""
        return self._heads(self.k_proj(x)), self._heads(self.v_proj(x))

    def forward(
        self,
        x: Tensor,
        source: Source | None,
        padding: Tensor | None,
        causal: bool,
        incremental_state: IncrementalState | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Attends.

        Args:
            x: (T, B, C); in incremental decoding T is 1. The B / N rows of one source sentence lie side by side.
            source: that all positions see; None while the source itself is read.
            padding: (B, T), true at padding, with the positions of earlier steps; None where there is none.
            causal: a position does not see later ones of ``x``.
            incremental_state: the cache of earlier steps.

        Returns:
            (T, B, C); the keys and values of ``x``, (B, H, T, D); and the mean over heads of the weights that
            source positions got, (B, T, S), None without a source.
        """
        queries = self._heads(self.q_proj(x)) * self.scaling
        keys, values = own_keys, own_values = self.keys_and_values(x)
        if incremental_state is not None:
            keys, values = self._with_earlier(keys, values, incremental_state)
        scores = queries @ keys.transpose(-1, -2)  # (B, H, T, earlier + T)
        if causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, _hidden(scores))
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None, :], _hidden(scores))
        if source is None:
            attended, on_source = self._weights(scores) @ values, None
        else:
            of_source = _by_sentence(queries, source) @ source.keys.transpose(-1, -2)
            if source.padding is not None:
                of_source = of_source.masked_fill(source.padding[:, None, None, :], _hidden(scores))
            length = source.keys.size(2)
            weights = self._weights(torch.cat([_by_row(of_source, queries), scores], dim=-1))
            on_source = weights[..., :length]
            from_source = _by_sentence(on_source, source) @ source.values
            attended = weights[..., length:] @ values + _by_row(from_source, queries)
        output = self.out_proj(attended.permute(2, 0, 1, 3).flatten(2))
        return output, own_keys, own_values, None if on_source is None else on_source.mean(1)

    def _heads(self, projected: Tensor) -> Tensor:
        """(T, B, C) to (B, H, T, D)."""
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).permute(1, 2, 0, 3)

    def _weights(self, scores: Tensor) -> Tensor:
        # as in fairseq, in float32 where the rest is in half precision
        precise = torch.promote_types(scores.dtype, torch.float32)
        return self.dropout_module(scores.softmax(-1, dtype=precise).to(scores.dtype))

    def _with_earlier(self, keys: Tensor, values: Tensor, state: IncrementalState) -> tuple[Tensor, Tensor]:
        """The keys and values of all steps until now; keeps them for the next."""
        earlier: Any = self._get_input_buffer(state)
        if earlier.get("prev_key") is not None:
            keys = torch.cat([earlier["prev_key"], keys], dim=2)
            values = torch.cat([earlier["prev_value"], values], dim=2)
        self._set_input_buffer(state, {"prev_key": keys, "prev_value": values})
        return keys, values


def _hidden(scores: Tensor) -> float:
    """The score of what must not be seen: not -inf, so that a row of padding alone does not become NaN."""
    return torch.finfo(scores.dtype).min


def _by_sentence(x: Tensor, source: Source) -> Tensor:
    """(B, H, T, ...) to (N, H, T B / N, ...): one product serves all rows of a sentence, whose keys are not copied."""
    sentences = source.keys.size(0)
    rows = x.size(0) // sentences
    return x if rows == 1 else x.unflatten(0, (sentences, rows)).transpose(1, 2).flatten(2, 3)


def _by_row(x: Tensor, like: Tensor) -> Tensor:
    """The way back: (N, H, T B / N, ...) to (B, H, T, ...), where ``like`` has that shape."""
    rows = like.size(0) // x.size(0)
    return x if rows == 1 else x.unflatten(2, (rows, like.size(2))).transpose(1, 2).flatten(0, 1)
