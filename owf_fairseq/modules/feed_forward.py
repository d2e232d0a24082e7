"""The feed-forward network (FFN): the block that layers share, and what every layer does with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from fairseq import utils
from fairseq.modules import LayerNorm
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.quant_noise import quant_noise
from torch import Tensor, nn
from torch.nn import functional

from owf_fairseq.modules.residual import ResidualSublayers
from owf_fairseq.patterns import Pattern, blocks_in_order
from owf_fairseq.per_layer import PerLayer


class FeedForwardBlock(NamedTuple):
    """FFN(x) = act(x W1 + b1) W2 + b2 (paper, Equation 1) and its layer norm.

    A tuple of modules and not a module of its own: each layer that uses the block registers its parts under fairseq's
    names (``fc1``, ``fc2``, ``final_layer_norm``), so that a state dict is the one that fairseq would write.
    """

    fc1: nn.Linear
    fc2: nn.Linear
    final_layer_norm: nn.Module


def make_feed_forward(cfg: Any, stack: Any, width: int) -> FeedForwardBlock:
    """A new block.

    Args:
        cfg: fairseq's TransformerConfig.
        stack: ``cfg.encoder`` or ``cfg.decoder``, with d_model (``embed_dim``).
        width: d_ff.
    """

    def linear(input_dim: int, output_dim: int) -> nn.Linear:
        layer = nn.Linear(input_dim, output_dim)
        noisy: nn.Linear = quant_noise(layer, cfg.quant_noise.pq, cfg.quant_noise.pq_block_size)
        return noisy

    return FeedForwardBlock(
        fc1=linear(stack.embed_dim, width),
        fc2=linear(width, stack.embed_dim),
        final_layer_norm=LayerNorm(stack.embed_dim, export=cfg.export),
    )


class LayerLinear(nn.Linear):
    """A linear layer with the weight of another one, and terms of its own: (W + B A) (s * x) + b.

    Args:
        shared: whose weight W it has, (O, I), and whose bias b where it has none of its own.
        bias: a bias of its own, which begins as the shared one. scale: a factor s for each input, 1 at the start.
        lora: the rank of B A, 0 for none; B is zero at the start.
        generator: of A, so that the rest of the model gets the random weights that it gets without it.
    """

    def __init__(
        self,
        shared: nn.Linear,
        generator: torch.Generator,
        *,
        bias: bool = False,
        scale: bool = False,
        lora: int = 0,
    ) -> None:
        nn.Module.__init__(self)  # torch's own would make weights
        self.in_features, self.out_features = shared.in_features, shared.out_features
        self.weight = shared.weight
        self.bias = nn.Parameter(shared.bias.detach().clone()) if bias else shared.bias
        if scale:
            self.scale = nn.Parameter(torch.ones_like(shared.weight[0]))
        if lora:
            bound = self.in_features**-0.5  # torch's own for a linear layer
            a = torch.empty(lora, self.in_features, device="cpu").uniform_(-bound, bound, generator=generator)
            self.lora_a = nn.Parameter(a.to(shared.weight))
            self.lora_b = nn.Parameter(shared.weight.new_zeros(self.out_features, lora))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (..., I) to (..., O)."""
        scale, lora_a = getattr(self, "scale", None), getattr(self, "lora_a", None)
        if scale is not None:
            x = x * scale
        y = functional.linear(x, self.weight, self.bias)
        return y if lora_a is None else y + functional.linear(functional.linear(x, lora_a), self.lora_b)


def feed_forward_in_order(
    numbers: Pattern, make: Callable[[int], FeedForwardBlock], per_layer: PerLayer
) -> Iterator[FeedForwardBlock | None]:
    """The FFN of each layer in turn, None where it is dropped; where layers share one, with each layer's own terms."""
    generator = torch.Generator("cpu").manual_seed(torch.initial_seed())
    for number, block in zip(numbers, blocks_in_order(numbers, make), strict=True):
        shared = block is not None and numbers.count(number) > 1
        yield _with_own_terms(block, per_layer, generator) if block is not None and shared else block


def _with_own_terms(block: FeedForwardBlock, per_layer: PerLayer, generator: torch.Generator) -> FeedForwardBlock:
    """The block as one layer has it."""
    if per_layer.norm:
        block = block._replace(final_layer_norm=copy.deepcopy(block.final_layer_norm))
    if per_layer.changes_weights:
        fc1 = LayerLinear(block.fc1, generator, bias=per_layer.bias, scale=per_layer.scale, lora=per_layer.lora)
        block = block._replace(fc1=fc1)
    if per_layer.lora:
        block = block._replace(fc2=LayerLinear(block.fc2, generator, lora=per_layer.lora))
    return block


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
