"""LNS against a count by hand: neighbours, ties, order, blocks."""

import math

import pytest
import torch

from owf_fairseq.analysis import lns as module
from owf_fairseq.analysis.lns import lns, lns_matrix, neighborhood_size, neighbors
from owf_fairseq.analysis.neighbors import nearest

GENERATOR = torch.Generator().manual_seed(1)
A = torch.randn(40, 6, generator=GENERATOR)
B = A + 0.7 * torch.randn(40, 6, generator=GENERATOR)


def by_hand(features, sentence, k):
    """The neighbours of a sentence, from cosine distances that are computed one by one."""

    def distance(other):
        one, two = features[sentence].tolist(), features[other].tolist()
        product = sum(x * y for x, y in zip(one, two, strict=True))
        return round(1 - product / (math.hypot(*one) * math.hypot(*two)), 6)

    others = [other for other in range(len(features)) if other != sentence]
    kth = sorted(map(distance, others))[k - 1]
    return {other for other in others if distance(other) <= kth}


def lns_by_hand(one, other, k):
    total = 0.0
    for sentence in range(len(one)):
        left, right = (by_hand(features, sentence, k) for features in (one, other))
        total += len(left & right) / len(left | right)
    return total / len(one)


@pytest.mark.parametrize("k", [1, 2, 7, 39])
def test_it_is_what_a_count_by_hand_gives(k):
    assert lns(A, B, k) == pytest.approx(lns_by_hand(A, B, k), abs=1e-12)
    for sentence in (0, 17, 39):
        row = neighbors(A, range(sentence, sentence + 1), k)[0]
        assert set(row.nonzero().flatten().tolist()) == by_hand(A, sentence, k)


def test_with_itself_it_is_one():
    assert lns(A, A, 5) == lns(A, 3 * A, 5) == lns(A, A @ torch.linalg.qr(torch.randn(6, 6)).Q, 5) == 1


def test_a_sentence_is_never_its_own_neighbour():
    same = torch.ones(10, 3)  # every sentence is as near to each other one as to itself
    mask = neighbors(same, range(10), 4)
    assert not mask.diagonal().any()
    assert mask.sum(1).tolist() == [9] * 10
    assert not neighbors(A, range(40), 39).diagonal().any()


def test_all_that_are_as_near_as_the_kth_count():
    east, north = [1.0, 0.0], [0.0, 1.0]
    features = torch.tensor([east, east, [1.0, 0.1], [1.0, 0.1], [1.0, 0.1], north])
    first = neighbors(features, range(1), 2)[0]
    assert first.tolist() == [False, True, True, True, True, False]
    assert neighbors(features, range(1), 1)[0].tolist() == [False, True, False, False, False, False]


def test_rounding_makes_ties_of_what_float32_cannot_tell_apart():
    features = torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.1 + 1e-7], [1.0, 0.5]])
    assert neighbors(features, range(1), 1)[0].tolist() == [False, True, True, False]


def test_order_of_the_sentences_changes_nothing():
    repeated = torch.cat([A[:20], A[:20]])  # each sentence twice: everything is tied
    other = torch.cat([B[:20], B[:20]])
    order = torch.randperm(40, generator=GENERATOR)
    for k in (1, 2, 5):
        assert lns(repeated[order], other[order], k) == pytest.approx(lns(repeated, other, k), abs=1e-12)


def test_vectors_of_zeros():
    with_zeros = A.clone()
    with_zeros[3] = 0
    assert 0 < lns(with_zeros, B, 5) < 1
    assert lns(torch.zeros(10, 3), torch.zeros(10, 3), 2) == 1


def test_matrix_has_every_pair_in_any_blocks(monkeypatch):
    features, done = [A, B, A[:, :3]], []
    whole = lns_matrix(features, [B, A], 5)
    monkeypatch.setattr(module, "BLOCK_BYTES", 1)  # a sentence at a time
    single = lns_matrix(features, [B, A], 5, done.append)
    assert done == [1] * 40
    assert torch.allclose(whole, single, atol=1e-12)
    for i, one in enumerate(features):
        for j, other in enumerate([B, A]):
            assert float(whole[i, j]) == pytest.approx(lns_by_hand(one, other, 5), abs=1e-12)
    square = lns_matrix(features, features, 5)
    assert torch.allclose(square, lns_matrix(features, list(features), 5), atol=1e-12)


def test_five_percent_is_the_default():
    assert [neighborhood_size(n) for n in (2037, 516, 20, 2)] == [102, 26, 1, 1]
    assert lns(A, B) == lns(A, B, 2)


def test_numbers_that_cannot_be():
    with pytest.raises(ValueError, match="same sentences"):
        lns(A, B[:-1])
    for k in (0, 40):
        with pytest.raises(ValueError, match="k must be from 1 to 39"):
            lns(A, B, k)


def test_nearest_are_listed_in_order():
    found = nearest(A, 7, 5)
    assert {number for number, _ in found} == by_hand(A, 7, 5)
    distances = [distance for _, distance in found]
    assert distances == sorted(distances)
    assert nearest(torch.ones(5, 2), 2, 4) == [(n, pytest.approx(0, abs=1e-12)) for n in (0, 1, 3, 4)]
