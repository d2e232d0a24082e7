"""Encoder and decoder layers, made of sublayers that they are handed. They don't know what is shared."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from owf_fairseq.compat import EncoderLayerCompat, drop_fast_path_weights
from owf_fairseq.modules.attention import IncrementalState
from owf_fairseq.modules.feed_forward import FeedForwardBlock, LayerWithFeedForward


class TransformerEncoderLayer(LayerWithFeedForward, EncoderLayerCompat):
    """Self-attention and FFN; takes and returns what fairseq's ``TransformerEncoderLayerBase`` does.

    Args:
        cfg: fairseq's TransformerConfig.
        self_attn: this layer's attention; None drops the sublayer.
        feed_forward: the block that this layer uses; None drops the sublayer.
    """

    def __init__(self, cfg: Any, self_attn: MultiheadAttention | None, feed_forward: FeedForwardBlock | None) -> None:
        super().__init__(cfg, cfg.encoder)
        self.self_attn, self.self_attn_layer_norm = self.with_layer_norm(self_attn, cfg)
        self.use_feed_forward(feed_forward, cfg)

    def forward(self, x: Tensor, encoder_padding_mask: Tensor | None, attn_mask: Tensor | None = None) -> Tensor:
        """Encodes one layer further.

        Args:
            x: (T, B, C).
            encoder_padding_mask: (B, T), true at padding.
            attn_mask: (T, T), true where a position (row) must not see another (column).

        Returns:
            (T, B, C).
        """
        if self.self_attn is None:
            return self.feed_forward(x)
        if attn_mask is not None:
            # fairseq's numbers, and not -inf: a row that sees nothing would become NaN
            hidden = -1e8 if x.dtype == torch.float32 else -1e4
            attn_mask = x.new_zeros(attn_mask.shape).masked_fill(attn_mask.bool(), hidden)
        residual = x
        x = self.before_sublayer(x, self.self_attn_layer_norm)
        x, _ = self.self_attn(
            query=x, key=x, value=x, key_padding_mask=encoder_padding_mask, need_weights=False, attn_mask=attn_mask
        )
        x = self.after_sublayer(x, residual, self.self_attn_layer_norm)
        return self.feed_forward(x)

    def upgrade_state_dict_named(self, state_dict: dict[str, Any], name: str) -> None:
        """Called by fairseq's encoder while it loads a state dict; ``name`` is this layer's."""
        drop_fast_path_weights(state_dict, f"{name}.")


class TransformerDecoderLayer(LayerWithFeedForward):
    """Self-attention, cross-attention and FFN; takes and returns what ``TransformerDecoderLayerBase`` does.

    Args:
        cfg: fairseq's TransformerConfig.
        self_attn: this layer's self-attention; None drops the sublayer.
        encoder_attn: this layer's cross-attention; None drops the sublayer.
        feed_forward: the block that this layer uses; None drops the sublayer.
    """

    def __init__(
        self,
        cfg: Any,
        self_attn: MultiheadAttention | None,
        encoder_attn: MultiheadAttention | None,
        feed_forward: FeedForwardBlock | None,
    ) -> None:
        super().__init__(cfg, cfg.decoder)
        self.self_attn, self.self_attn_layer_norm = self.with_layer_norm(self_attn, cfg)
        self.encoder_attn, self.encoder_attn_layer_norm = self.with_layer_norm(encoder_attn, cfg)
        self.use_feed_forward(feed_forward, cfg)
        self.need_attn = True

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        incremental_state: IncrementalState | None = None,
        *,
        self_attn_mask: Tensor | None = None,
        self_attn_padding_mask: Tensor | None = None,
        need_attn: bool = False,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None, None]:
        """Decodes one layer further.

        Args:
            x: (T, B, C); T is 1 in incremental decoding.
            encoder_out: (S, B, C).
            encoder_padding_mask: (B, S), true at padding.
            incremental_state: the caches, filed by attention object.
            self_attn_mask: (T, T), added to the attention's weights before the softmax.
            self_attn_padding_mask: (B, T), true at padding.
            need_attn: return the cross-attention's weights.
            need_head_weights: return them for each head; otherwise their mean.

        Returns:
            (T, B, C); the weights, (B, T, S) or (H, B, T, S), or None; and None, which fairseq's decoder ignores.
        """
        attn = None
        if self.self_attn is not None:
            residual = x
            x = self.before_sublayer(x, self.self_attn_layer_norm)
            x, _ = self.self_attn(
                query=x,
                key=x,
                value=x,
                key_padding_mask=self_attn_padding_mask,
                incremental_state=incremental_state,
                need_weights=False,
                attn_mask=self_attn_mask,
            )
            x = self.after_sublayer(x, residual, self.self_attn_layer_norm)

        if self.encoder_attn is not None and encoder_out is not None:
            residual = x
            x = self.before_sublayer(x, self.encoder_attn_layer_norm)
            x, attn = self.encoder_attn(
                query=x,
                key=encoder_out,
                value=encoder_out,
                key_padding_mask=encoder_padding_mask,
                incremental_state=incremental_state,
                static_kv=True,
                need_weights=need_attn or need_head_weights or (not self.training and self.need_attn),
                need_head_weights=need_head_weights,
            )
            x = self.after_sublayer(x, residual, self.encoder_attn_layer_norm)

        return self.feed_forward(x), attn, None

    def make_generation_fast_(self, need_attn: bool = False, **kwargs: Any) -> None:
        """Called by fairseq before it decodes: attention weights are computed only if they are printed."""
        self.need_attn = need_attn
