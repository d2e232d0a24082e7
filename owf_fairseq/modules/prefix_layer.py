"""The layer of a decoder-only model, for source and target alike."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from owf_fairseq.modules.attention import IncrementalState
from owf_fairseq.modules.feed_forward import FeedForwardBlock, LayerWithFeedForward
from owf_fairseq.modules.prefix_attention import PrefixSelfAttention, Source


class PrefixLayer(LayerWithFeedForward):
    """Self-attention and FFN.

    Args:
        cfg: fairseq's TransformerConfig.
        self_attn: this layer's attention; None drops the sublayer.
        feed_forward: the block that this layer uses; None drops the sublayer.
    """

    def __init__(self, cfg: Any, self_attn: PrefixSelfAttention | None, feed_forward: FeedForwardBlock | None) -> None:
        super().__init__(cfg, cfg.decoder)
        self.self_attn, self.self_attn_layer_norm = self.with_layer_norm(self_attn, cfg)
        self.use_feed_forward(feed_forward, cfg)

    def forward(
        self,
        x: Tensor,
        source_keys: Tensor | None,
        source_values: Tensor | None,
        source_padding: Tensor | None,
        padding: Tensor | None,
        causal: bool,
        incremental_state: IncrementalState | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """Reads one layer further; takes and returns what ``PrefixSelfAttention.forward`` does.

        Without attention there are no keys, no values and no weights.

        The parts of the source are arguments of their own, because ``--checkpoint-activations`` looks for tensors
        among the arguments only.
        """
        if self.self_attn is None:
            return self.feed_forward(x), None, None, None
        source = None
        if source_keys is not None and source_values is not None:
            source = Source(source_keys, source_values, source_padding)
        residual = x
        x = self.before_sublayer(x, self.self_attn_layer_norm)
        x, keys, values, on_source = self.self_attn(x, source, padding, causal, incremental_state)
        x = self.after_sublayer(x, residual, self.self_attn_layer_norm)
        return self.feed_forward(x), keys, values, on_source

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What later positions see of ``x``, (T, B, C): all that is needed of the source in the last attention."""
        assert self.self_attn is not None
        keys_and_values: tuple[Tensor, Tensor] = self.self_attn.keys_and_values(
            self.before_sublayer(x, self.self_attn_layer_norm)
        )
        return keys_and_values
