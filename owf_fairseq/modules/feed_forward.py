"""The feed-forward network (FFN): the block that layers share, and what every layer does with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fairseq import utils
from fairseq.modules import LayerNorm
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.quant_noise import quant_noise
from torch import Tensor, nn

from owf_fairseq.modules.residual import ResidualSublayers
from owf_fairseq.sharing import Pattern, blocks_in_order


class FeedForwardBlock(NamedTuple):
    """FFN(x) = act(x W1 + b1) W2 + b2 (paper, Equation 1) and its layer norm.

    A tuple of modules and not a module of its own: each layer that uses the block registers its parts under fairseq's
    names (``fc1``, ``fc2``, ``final_layer_norm``), so that a state dict is the one that fairseq would write.
    """

    fc1: nn.Module
    fc2: nn.Module
    final_layer_norm: nn.Module


def make_feed_forward(cfg: Any, stack: Any) -> FeedForwardBlock:
    """A new block.

    Args:
        cfg: fairseq's TransformerConfig.
        stack: ``cfg.encoder`` or ``cfg.decoder``, with d_model (``embed_dim``) and d_ff (``ffn_embed_dim``).
    """

    def linear(input_dim: int, output_dim: int) -> nn.Module:
        layer = nn.Linear(input_dim, output_dim)
        return quant_noise(layer, cfg.quant_noise.pq, cfg.quant_noise.pq_block_size)

    return FeedForwardBlock(
        fc1=linear(stack.embed_dim, stack.ffn_embed_dim),
        fc2=linear(stack.ffn_embed_dim, stack.embed_dim),
        final_layer_norm=LayerNorm(stack.embed_dim, export=cfg.export),
    )


def feed_forward_in_order(
    numbers: Pattern, make: Callable[[int], FeedForwardBlock], *, share_layer_norm: bool
) -> Iterator[FeedForwardBlock | None]:
    """The FFN of each layer in turn, None where it is dropped; with a layer norm of each layer's own if asked for."""
    for block in blocks_in_order(numbers, make):
        if block is not None and not share_layer_norm:
            block = block._replace(final_layer_norm=copy.deepcopy(block.final_layer_norm))
        yield block


class LayerWithFeedForward(ResidualSublayers):
    """What every layer does with the FFN that it was handed: apply it, with residual connection and layer norm."""

    fc1: nn.Module
    fc2: nn.Module
    final_layer_norm: nn.Module

    def use_feed_forward(self, block: FeedForwardBlock | None, cfg: Any) -> None:
        """Registers the block under fairseq's names; None drops the whole sublayer."""
        self.has_feed_forward = block is not None
        if block is None:
            return
        self.fc1, self.fc2, self.final_layer_norm = block
        self.activation_fn = utils.get_activation_fn(activation=cfg.activation_fn)
        # relu_dropout is the older name of the same flag; fairseq's layers read both
        self.activation_dropout_module = FairseqDropout(
            float(cfg.activation_dropout or cfg.relu_dropout or 0), module_name=self.__class__.__name__
        )

    def feed_forward(self, x: Tensor) -> Tensor:
        """Maps (T, B, C) to (T, B, C); without a block, to the very input (paper, Section 2.2, footnote)."""
        if not self.has_feed_forward:
            return x
        residual = x
        x = self.before_sublayer(x, self.final_layer_norm)
        x = self.activation_fn(self.fc1(x))
        x = self.activation_dropout_module(x)
        x = self.fc2(x)
        return self.after_sublayer(x, residual, self.final_layer_norm)
