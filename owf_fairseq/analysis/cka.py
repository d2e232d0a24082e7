"""Linear centred kernel alignment (CKA): how alike two representations of the same sentences are.

CKA(A, B) = ||B'A||² / (||A'A|| ||B'B||), with Frobenius norms and features (sentences, dimensions) whose mean over
sentences is taken away: Kornblith et al. 2019, "Similarity of Neural Network Representations Revisited". (The paper
prints AB' in the numerator, which does not fit its n x d matrices: B'A is what its source has, and what is meant.) It
does not change under rotations of either space, nor under scaling, but does under other linear maps.

With fewer sentences than dimensions, any two representations look alike: the debiased estimator does not have that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

LEAST_SENTENCES = 4
"""The debiased estimator needs as many."""

_NOISE = 1e-6
"""What varies by less, relative to its size, is constant: that much a sum in float32 differs by the batch alone."""


def cka(one: Tensor, other: Tensor, debiased: bool = False) -> float:
    """CKA of two representations.

    Args:
        one, other: (n, d) and (n, d'), of the same sentences in the same order.
        debiased: see ``cka_matrix``.

    Returns:
        See ``cka_matrix``.
    """
    return float(cka_matrix([one], [other], debiased))


def cka_matrix(
    one: Sequence[Tensor],
    other: Sequence[Tensor],
    debiased: bool = False,
    advance: Callable[[int], None] = lambda done: None,
) -> Tensor:
    """CKA of every representation with every other one, computed in float64.

    Args:
        one, other: representations, (n, d) each, of the same sentences in the same order.
        debiased: estimate each of the three terms without bias (Song et al. 2012, Equation 5, in the form of features;
            as Nguyen et al. 2021 do): independent representations have about 0 in the mean. Single values scatter
            around it, the more the fewer sentences there are, and can be negative. Needs ``LEAST_SENTENCES``.
        advance: is told how many pairs are done.

    Returns:
        (len(one), len(other)), from 0 to 1, or -1 to 1 if debiased. A representation that is the same for all sentences
        has 0 with everything, itself included.

    Raises:
        ValueError: the numbers of sentences differ, or are too few.
    """
    sizes = {len(features) for features in (*one, *other)}
    if len(sizes) > 1:
        raise ValueError(f"the same sentences are needed in both, but there are {sorted(sizes)}")
    if debiased and min(sizes, default=LEAST_SENTENCES) < LEAST_SENTENCES:
        raise ValueError(f"the debiased estimator needs {LEAST_SENTENCES} sentences, but there are {min(sizes)}")
    alignment = _debiased_alignment if debiased else _alignment
    found = torch.zeros(len(one), len(other), dtype=torch.float64)
    symmetric = one is other
    norms = [[_norm(features, alignment) for features in side] for side in ((one,) if symmetric else (one, other))]
    for i, features in enumerate(one):
        centred = _centred(features)
        for j in range(i if symmetric else 0, len(other)):
            scale = norms[0][i] * norms[-1][j]
            value = alignment(centred, _centred(other[j])) / scale if scale > 0 else 0.0
            found[i, j] = value
            if symmetric:
                found[j, i] = value
            advance(1 if not symmetric or i == j else 2)
    return found


def _centred(features: Tensor) -> Tensor:
    """In float64, with a mean of 0 over the sentences."""
    features = features.double()
    return features - features.mean(0)


def _norm(features: Tensor, alignment: Callable[[Tensor, Tensor], float]) -> float:
    """The root of the alignment with itself; 0 for constant features."""
    centred = _centred(features)
    if centred.norm() <= _NOISE * features.double().norm():
        return 0.0
    return max(alignment(centred, centred), 0.0) ** 0.5


def _alignment(one: Tensor, other: Tensor) -> float:
    """||B'A||² of centred features."""
    return float((other.T @ one).square().sum())


def _debiased_alignment(one: Tensor, other: Tensor) -> float:
    """n (n - 3) times the unbiased HSIC: what is left of ||B'A||² without what each sentence adds by itself."""
    n = len(one)
    lengths, others = one.square().sum(1), other.square().sum(1)
    own = float(lengths @ others) * n / (n - 2)
    means = float(lengths.sum() * others.sum()) / ((n - 1) * (n - 2))
    return _alignment(one, other) - own + means
