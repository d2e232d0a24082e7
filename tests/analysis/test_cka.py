"""CKA against what is known of it: invariances, the form with Gram matrices, the estimator's expectation."""

import pytest
import torch

from owf_fairseq.analysis.cka import cka, cka_matrix

GENERATOR = torch.Generator().manual_seed(1)


def random(*shape):
    return torch.randn(*shape, generator=GENERATOR, dtype=torch.float64)


X = random(60, 8) @ random(8, 8) + 3  # correlated, and not centred
Y = X @ random(8, 5) + random(60, 5)


def gram(one, other):
    """CKA from n x n matrices (Kornblith et al. 2019, Equations 2 to 4): HSIC(K, L) = tr(K H L H)."""
    n = len(one)
    centring = torch.eye(n, dtype=torch.float64) - 1 / n
    k, m = (centring @ x.double() @ x.double().T @ centring for x in (one, other))
    return float((k * m).sum() / (k.norm() * m.norm()))


def gram_debiased(one, other):
    """From the unbiased HSIC as it is printed in Song et al. 2012, Equation 5."""

    def hsic(k, m):
        n = len(k)
        k, m = (matrix - torch.diag(matrix.diagonal()) for matrix in (k, m))
        ones = torch.ones(n, dtype=torch.float64)
        middle = (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
        return (torch.trace(k @ m) + middle - 2 / (n - 2) * (ones @ k @ m @ ones)) / (n * (n - 3))

    k, m = (x.double() @ x.double().T for x in (one, other))
    return float(hsic(k, m) / (hsic(k, k) * hsic(m, m)).sqrt())


@pytest.mark.parametrize("debiased", [False, True])
def test_with_itself_it_is_one(debiased):
    assert cka(X, X, debiased) == pytest.approx(1, abs=1e-12)
    assert cka(X, X.clone(), debiased) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("debiased", [False, True])
def test_rotations_shifts_and_scale_change_nothing(debiased):
    rotation = torch.linalg.qr(random(8, 8)).Q
    assert cka(X @ rotation, Y, debiased) == pytest.approx(cka(X, Y, debiased), abs=1e-12)
    assert cka(X * 1000, Y / 7, debiased) == pytest.approx(cka(X, Y, debiased), abs=1e-12)
    assert cka(X + random(8), Y, debiased) == pytest.approx(cka(X, Y, debiased), abs=1e-12)


@pytest.mark.parametrize("debiased", [False, True])
def test_another_invertible_map_changes_it(debiased):
    stretched = X * torch.tensor([100.0, 1, 1, 1, 1, 1, 1, 1], dtype=torch.float64)
    assert abs(cka(stretched, Y, debiased) - cka(X, Y, debiased)) > 0.01


def test_without_centring_it_would_be_another_number():
    uncentred = float((Y.T @ X).square().sum() / ((X.T @ X).norm() * (Y.T @ Y).norm()))
    assert abs(uncentred - cka(X, Y)) > 0.05


def test_it_is_the_form_with_gram_matrices():
    for one, other in ((X, Y), (Y, X), (X[:6], Y[:6]), (random(10, 300), random(10, 200))):
        assert cka(one, other) == pytest.approx(gram(one, other), abs=1e-12)
        assert cka(one, other, True) == pytest.approx(gram_debiased(one, other), abs=1e-10)


def test_independent_representations():
    """With as many dimensions as sentences, the paper's estimator sees similarity that is not there."""
    biased, debiased = ([], [])
    for _ in range(20):
        one, other = random(100, 100), random(100, 100)
        biased.append(cka(one, other))
        debiased.append(cka(one, other, True))
    assert min(biased) > 0.45  # about d / (n + d)
    assert abs(sum(debiased) / 20) < 0.01
    assert max(map(abs, debiased)) < 0.05


@pytest.mark.parametrize("debiased", [False, True])
def test_constant_features_have_nothing_in_common_with_any(debiased):
    constant = torch.full((60, 8), 0.1)
    assert cka(constant, X, debiased) == cka(X, constant, debiased) == cka(constant, constant, debiased) == 0
    noise = constant + 1e-9 * random(60, 8)  # as large as float32's rounding
    assert cka(noise, X, debiased) == 0
    assert cka(torch.zeros(60, 8), X, debiased) == 0


@pytest.mark.parametrize("debiased", [False, True])
def test_matrix_has_every_pair(debiased):
    features, done = [X, Y, X[:, :3], torch.ones(60, 2)], []
    square = cka_matrix(features, features, debiased, done.append)
    full = cka_matrix(features, list(features), debiased)
    for i, one in enumerate(features):
        for j, other in enumerate(features):
            assert float(square[i, j]) == pytest.approx(cka(one, other, debiased), abs=1e-12)
    assert torch.allclose(square, full, atol=1e-12)
    assert sum(done) == 16


def test_computed_in_float64():
    shifted = (X + 1e4).float()
    assert cka(shifted, Y) == pytest.approx(gram(shifted, Y), abs=1e-12)
    assert cka_matrix([X.float()], [Y.float()]).dtype == torch.float64


def test_wrong_numbers_of_sentences():
    with pytest.raises(ValueError, match="same sentences"):
        cka(X, Y[:-1])
    with pytest.raises(ValueError, match="needs 4 sentences"):
        cka(X[:3], Y[:3], debiased=True)
