"""Local neighbourhood similarity (LNS): whether sentences have the same neighbours in two representations.

LNS(s) = |kNN₁(s) ∩ kNN₂(s)| / |kNN₁(s) ∪ kNN₂(s)|, the neighbours being those of the smallest cosine distance (paper,
Section 2.3; Boggust et al. 2022); of two representations, its mean over the sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

SHARE = 0.05
"""Of the sentences that are a sentence's neighbours (paper, Section 2.3)."""

DECIMALS = 6
"""Of cosine distances: those that are equal so far are equal. What models compute in float32 has no more."""

BLOCK_BYTES = 2**29
"""Of memory for the sentences that are looked at together, beside the representations."""


def neighborhood_size(sentences: int) -> int:
    """k: 5 % of the sentences, and at least one."""
    return max(1, round(SHARE * sentences))


def lns(one: Tensor, other: Tensor, k: int | None = None) -> float:
    """LNS of two representations.

    Args:
        one, other: (n, d) and (n, d'), of the same sentences in the same order.
        k: see ``lns_matrix``.
    """
    return float(lns_matrix([one], [other], k))


def lns_matrix(
    one: Sequence[Tensor],
    other: Sequence[Tensor],
    k: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> Tensor:
    """LNS of every representation with every other one.

    Args:
        one, other: representations, (n, d) each, of the same sentences in the same order.
        k: neighbours of a sentence, which is never among them itself; by default ``neighborhood_size``. All sentences
            that are as far away as the k-th, see ``DECIMALS``, count, so that the result doesn't depend on the order
            of the sentences.
        advance: is told how many sentences are done.

    Returns:
        (len(one), len(other)), in float64, from 0 to 1.

    Raises:
        ValueError: the numbers of sentences differ, or there are not more than k.
    """
    sizes = {len(features) for features in (*one, *other)}
    if len(sizes) != 1:
        raise ValueError(f"the same sentences are needed in both, but there are {sorted(sizes)}")
    (n,) = sizes
    k = neighborhood_size(n) if k is None else k
    if not 1 <= k < n:
        raise ValueError(f"k must be from 1 to {n - 1}, one less than the sentences, but is {k}")
    total = torch.zeros(len(one), len(other), dtype=torch.float64)
    for jaccard in jaccard_by_block(one, other, k):
        total += jaccard.sum(0)
        advance(len(jaccard))
    return total / n


def jaccard_by_block(one: Sequence[Tensor], other: Sequence[Tensor], k: int) -> Iterator[Tensor]:
    """LNS of every sentence, see ``lns_matrix``: (sentences, len(one), len(other)) for each of ``blocks``."""
    sides = (one,) if one is other else (one, other)
    for rows in blocks(len(one[0]), k, sum(map(len, sides))):
        masks = [torch.stack([neighbors(x, rows, k).float() for x in side], dim=1) for side in sides]
        common = (masks[0] @ masks[-1].transpose(1, 2)).double()  # whole numbers, so exact
        ones, others = (mask.sum(-1).double() for mask in (masks[0], masks[-1]))
        yield common / (ones[:, :, None] + others[:, None, :] - common)


def neighbors(features: Tensor, rows: range, k: int) -> Tensor:
    """The neighbours of some sentences.

    Args:
        features: (n, d).
        rows: the sentences, by number.
        k: see ``lns_matrix``.

    Returns:
        (rows, n), true where the column's sentence is a neighbour of the row's.
    """
    similarity = cosine_similarities(features, rows).mul_(10**DECIMALS).round_()
    similarity[torch.arange(len(rows)), torch.arange(rows.start, rows.stop)] = -torch.inf
    kth = similarity.topk(k, dim=1).values[:, -1:]
    return similarity >= kth


def cosine_similarities(features: Tensor, rows: range) -> Tensor:
    """Of some sentences with all, (rows, n), in float64; a vector of zeros has 0 with everything."""
    features = features.double()
    lengths = features.norm(dim=1)
    lengths[lengths == 0] = torch.inf
    return (features[rows.start : rows.stop] @ features.T).div_(lengths).div_(lengths[rows.start : rows.stop, None])


def blocks(n: int, k: int, representations: int) -> Iterator[range]:
    """The sentences by number, in parts that ``BLOCK_BYTES`` have room for."""
    row = (
        n * (8 + 2 * 4 * representations) + 16 * k
    )  # similarities, masks and what they are stacked from, the k nearest
    size = max(1, BLOCK_BYTES // row)
    return (range(start, min(start + size, n)) for start in range(0, n, size))
