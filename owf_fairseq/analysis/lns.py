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
"""Of cosine distances: those that are equal so far are equal. What is behind, in float32, depends on the batch."""

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
    lengths = [[_lengths(features) for features in side] for side in sides]
    for rows in blocks(len(one[0]), k, sum(map(len, sides))):
        masks = [
            torch.stack([neighbors(x, rows, k, length) for x, length in zip(side, own, strict=True)], dim=1)
            for side, own in zip(sides, lengths, strict=True)
        ]
        # as numbers, they take four times the memory: a sentence at a time; the products are whole numbers, so exact
        common = torch.stack([a.float() @ b.float().T for a, b in zip(masks[0], masks[-1], strict=True)]).double()
        ones, others = (mask.sum(-1).double() for mask in (masks[0], masks[-1]))
        yield common / (ones[:, :, None] + others[:, None, :] - common)


def neighbors(features: Tensor, rows: range, k: int, lengths: Tensor | None = None) -> Tensor:
    """The neighbours of some sentences.

    Args:
        features: (n, d).
        rows: the sentences, by number.
        k: see ``lns_matrix``.
        lengths: of the vectors, if they are known.

    Returns:
        (rows, n), true where the column's sentence is a neighbour of the row's.
    """
    similarity = cosine_similarities(features, rows, lengths).mul_(10**DECIMALS).round_()
    similarity[torch.arange(len(rows)), torch.arange(rows.start, rows.stop)] = -torch.inf
    kth = similarity.topk(k, dim=1).values[:, -1:]
    return similarity >= kth


def cosine_similarities(features: Tensor, rows: range, lengths: Tensor | None = None) -> Tensor:
    """Of some sentences with all, (rows, n), in float64; a vector of zeros has 0 with everything."""
    lengths = _lengths(features) if lengths is None else lengths
    features = features.double()
    return (features[rows.start : rows.stop] @ features.T).div_(lengths).div_(lengths[rows.start : rows.stop, None])


def _lengths(features: Tensor) -> Tensor:
    """Of the vectors, in float64; infinite for a vector of zeros, so that dividing by it gives 0."""
    lengths = features.double().norm(dim=1)
    return lengths.masked_fill(lengths == 0, torch.inf)


def blocks(n: int, k: int, representations: int) -> Iterator[range]:
    """The sentences by number, in parts that ``BLOCK_BYTES`` have room for."""
    # similarities and what they are compared by, the k nearest, and the masks with what they are stacked from
    row = n * (2 * 8 + 2 * representations) + 16 * k
    size = max(1, BLOCK_BYTES // row)
    return (range(start, min(start + size, n)) for start in range(0, n, size))
