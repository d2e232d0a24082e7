"""Residual connection and layer norm around a sublayer, post-norm or pre-norm."""

from __future__ import annotations

from typing import Any, TypeVar

from fairseq.modules import LayerNorm, MultiheadAttention
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

Attention = TypeVar("Attention", bound=MultiheadAttention)


class ResidualSublayers(nn.Module):
    """What every sublayer of a layer has around it.

    Args:
        cfg: fairseq's TransformerConfig.
        stack: ``cfg.encoder`` or ``cfg.decoder``.
    """

    def __init__(self, cfg: Any, stack: Any) -> None:
        super().__init__()
        self.embed_dim = stack.embed_dim
        self.normalize_before = stack.normalize_before
        self.dropout_module = FairseqDropout(cfg.dropout, module_name=self.__class__.__name__)

    def with_layer_norm(self, attention: Attention | None, cfg: Any) -> tuple[Attention | None, Any]:
        """The attention with a new layer norm for it, or neither where it is dropped."""
        return attention, None if attention is None else LayerNorm(self.embed_dim, export=cfg.export)

    def before_sublayer(self, x: Tensor, layer_norm: nn.Module) -> Tensor:
        """The sublayer's input, (T, B, C)."""
        return layer_norm(x) if self.normalize_before else x

    def after_sublayer(self, x: Tensor, residual: Tensor, layer_norm: nn.Module) -> Tensor:
        """Dropout, residual connection and, post-norm, layer norm of the sublayer's output, (T, B, C)."""
        x = residual + self.dropout_module(x)
        return x if self.normalize_before else layer_norm(x)
