"""The algebra of a conversion: several feed-forward networks (FFNs) as one, and one as a wider one.

An FFN maps x to W2 act(W1 x + b1) + b2 (paper, Equation 1; W1 is ``fc1.weight``, (d_ff, d); W2 is ``fc2.weight``,
(d, d_ff)). A unit is one row of W1 with its element of b1 and its column of W2; act works on each unit alone. So

- **concatenated**, the units of N FFNs side by side, with every W2 divided by N and b2 the mean of theirs, are one FFN
  whose output is the mean of the outputs of the N, for every x: exactly;
- **averaged**, W1, b1, W2 and b2 each the mean, are one FFN whose output is *not* the mean of the outputs;
- a unit whose column of W2 is zero changes nothing, whatever its row of W1: an FFN can be **widened** exactly;
- an FFN of such units, with b2 = 0, gives 0: with the residual connection it is the identity, as if it were not there.

New units get a random row of W1, as ``torch.nn.Linear`` would make it: with both at zero, training would never move
them. Everything is computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

_Key = TypeVar("_Key")


class FFN(NamedTuple):
    """The weights of one FFN."""

    fc1_weight: Tensor
    fc1_bias: Tensor
    fc2_weight: Tensor
    fc2_bias: Tensor

    @property
    def width(self) -> int:
        """d_ff."""
        return self.fc1_weight.shape[0]


FFN_NAMES = ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
"""Their names in a state dict, behind that of the layer."""


def mean(tensors: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of one shape; of equal ones exactly their value."""
    total = tensors[0].double().clone()
    for tensor in tensors[1:]:
        total += tensor.double()
    return total / len(tensors)


def average_ffns(ffns: Sequence[FFN]) -> FFN:
    """One FFN of the same width: each weight is the mean of theirs."""
    return FFN(*(mean(tensors) for tensors in zip(*ffns, strict=True)))


def concatenate(ffns: Sequence[FFN]) -> FFN:
    """One FFN as wide as all together, whose output is the mean of theirs."""
    return FFN(
        torch.cat([ffn.fc1_weight.double() for ffn in ffns]),
        torch.cat([ffn.fc1_bias.double() for ffn in ffns]),
        torch.cat([ffn.fc2_weight.double() for ffn in ffns], dim=1) / len(ffns),
        mean([ffn.fc2_bias for ffn in ffns]),
    )


def widen(ffn: FFN, width: int, generator: torch.Generator) -> FFN:
    """The same function with more units.

    Args:
        ffn: at most as wide as ``width``.
        width: d_ff of the result.
        generator: of the new units' rows of W1.
    """
    more, dim = width - ffn.width, ffn.fc1_weight.shape[1]
    bound = dim**-0.5
    new_rows = torch.empty(more, dim, dtype=torch.float64).uniform_(-bound, bound, generator=generator)
    new_bias = torch.empty(more, dtype=torch.float64).uniform_(-bound, bound, generator=generator)
    new_columns = torch.zeros(ffn.fc2_weight.shape[0], more, dtype=torch.float64)
    return FFN(
        torch.cat([ffn.fc1_weight.double(), new_rows]),
        torch.cat([ffn.fc1_bias.double(), new_bias]),
        torch.cat([ffn.fc2_weight.double(), new_columns], dim=1),
        ffn.fc2_bias.double(),
    )


def zero(dim: int, width: int, generator: torch.Generator) -> FFN:
    """An FFN whose output is 0."""
    nothing = FFN(torch.zeros(0, dim), torch.zeros(0), torch.zeros(dim, 0), torch.zeros(dim))
    return widen(nothing, width, generator)


def different(blocks: Sequence[tuple[_Key, Sequence[Tensor]]]) -> list[tuple[_Key, Sequence[Tensor]]]:
    """The blocks without those that have the values of an earlier one.

    Args:
        blocks: each with the name of a layer that uses it.
    """
    kept: list[tuple[_Key, Sequence[Tensor]]] = []
    for key, tensors in blocks:
        if not any(same(tensors, other) for _, other in kept):
            kept.append((key, tensors))
    return kept


def same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Whether two blocks have the same values."""
    return all(a is b or (a.shape == b.shape and torch.equal(a, b)) for a, b in zip(one, other, strict=True))
