"""The terms that tell layers apart which share an FFN: merged into its weights, and made from weights that differ.

A layer's fc1 is (W1 + B1 A1) (s * x) + b1, its fc2 (W2 + B2 A2) x + b2. W1, W2 and b2 are the shared FFN's; the rest
is the layer's own, as far as ``--ffn-per-layer`` says so. As an FFN of its own the layer has the weights (W1 + B1 A1)
diag(s) and W2 + B2 A2: exactly, up to rounding. The way back is an approximation: W is the mean of the layers'
weights, and B A is the matrix of rank R that is nearest to what is left of a layer's own, its truncated singular value
decomposition (Eckart and Young, 1936; the adapters of Relaxed Recursive Transformers begin so: arXiv:2410.20672). All
is computed in float64.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from owf_fairseq.checkpoints.combine import FFN, FFN_NAMES
from owf_fairseq.per_layer import PerLayer

LINEARS = ("fc1", "fc2")


def merged(weights: Mapping[str, Tensor], layer: str) -> FFN:
    """The FFN of a layer with its own terms merged into the weights; without terms, the very tensors.

    Args:
        weights: of the model, under every name.
        layer: its name: ``encoder.layers.0``.
    """
    return FFN(
        merged_weight(weights, f"{layer}.fc1"),
        weights[f"{layer}.fc1.bias"],
        merged_weight(weights, f"{layer}.fc2"),
        weights[f"{layer}.fc2.bias"],
    )


def merged_weight(weights: Mapping[str, Tensor], linear: str) -> Tensor:
    """(W + B A) diag(s) of a linear layer, (O, I)."""
    weight = weights[f"{linear}.weight"]
    if f"{linear}.lora_a" in weights:
        weight = weight.double() + weights[f"{linear}.lora_b"].double() @ weights[f"{linear}.lora_a"].double()
    if f"{linear}.scale" in weights:
        weight = weight.double() * weights[f"{linear}.scale"].double()
    return weight


def own_terms(
    own: FFN, shared: FFN, per_layer: PerLayer, generator: torch.Generator
) -> tuple[dict[str, Tensor], tuple[float, float]]:
    """The terms with which a layer that shares an FFN comes as near to one of its own as they can; scales stay 1.

    Args:
        own: what the layer is to have.
        shared: what it shares; where it is wider, with units that change nothing.
        per_layer: which terms there are.
        generator: of what begins at random, see ``low_rank``.

    Returns:
        The terms by their name behind that of the layer (``fc1.lora_a``); and the sums of squares of what the layer's
        weights differ by from the shared ones: without terms, and with them.
    """
    own = _as_wide(own, shared)
    before = after = 0.0
    terms: dict[str, Tensor] = {}
    for linear, mine, theirs in zip(
        LINEARS, (own.fc1_weight, own.fc2_weight), (shared.fc1_weight, shared.fc2_weight), strict=True
    ):
        rest = mine.double() - theirs.double()
        before += rest.square().sum().item()
        if per_layer.lora:
            a, b = low_rank(rest, per_layer.lora, generator)
            terms |= {f"{linear}.lora_a": a, f"{linear}.lora_b": b}
            rest = rest - b @ a
        after += rest.square().sum().item()
    if per_layer.scale:
        terms["fc1.scale"] = torch.ones(own.fc1_weight.shape[1], dtype=torch.float64)
    if per_layer.bias:
        terms["fc1.bias"] = own.fc1_bias
    biases = ((FFN_NAMES[1], own.fc1_bias, shared.fc1_bias), (FFN_NAMES[3], own.fc2_bias, shared.fc2_bias))
    for name, mine, theirs in biases:
        rest = mine.double() - theirs.double()
        before += rest.square().sum().item()
        after += 0.0 if name in terms else rest.square().sum().item()
    return terms, (before, after)


def _as_wide(own: FFN, shared: FFN) -> FFN:
    """The FFN with the further units of the shared one, which change nothing."""
    width = own.width
    return FFN(
        torch.cat([own.fc1_weight.double(), shared.fc1_weight[width:].double()]),
        torch.cat([own.fc1_bias.double(), shared.fc1_bias[width:].double()]),
        torch.cat([own.fc2_weight.double(), shared.fc2_weight[:, width:].double()], dim=1),
        own.fc2_bias,
    )


def low_rank(matrix: Tensor, rank: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A, (R, I), and B, (O, R), whose product B A is the nearest to a matrix, (O, I).

    Where the matrix has a lower rank, the rest of B is zero and that of A random, as at the start of a training: with
    both at zero, training would never move them.
    """
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    there = values > matrix.shape[1] * torch.finfo(values.dtype).eps * max(values.max().item(), 1e-30)
    roots = values.sqrt() * there
    bound = matrix.shape[1] ** -0.5
    random = torch.empty_like(right).uniform_(-bound, bound, generator=generator)
    return torch.where(there[:, None], roots[:, None] * right, random), left * roots
