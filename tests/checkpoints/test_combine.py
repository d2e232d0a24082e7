"""The algebra of conversions, on random FFNs and random inputs."""

import pytest
import torch

from owf_fairseq.checkpoints.combine import FFN, average_ffns, concatenate, different, mean, widen, zero

DIM = 6


def random_ffn(width, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((width, DIM), (width,), (DIM, width), (DIM,))
    return FFN(*(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes))


def apply(ffn, x, activation):
    return activation(x @ ffn.fc1_weight.T + ffn.fc1_bias) @ ffn.fc2_weight.T + ffn.fc2_bias


@pytest.fixture
def x():
    return torch.randn(11, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("activation", [torch.relu, torch.nn.functional.gelu, torch.tanh])
def test_concatenated_ffns_give_the_mean_of_their_outputs(x, activation):
    ffns = [random_ffn(width, seed) for width, seed in ((4, 1), (4, 2), (7, 3))]
    expected = sum(apply(ffn, x, activation) for ffn in ffns) / 3
    combined = concatenate(ffns)
    assert combined.width == 15
    assert torch.allclose(apply(combined, x, activation), expected, atol=1e-12, rtol=0)


def test_averaged_ffns_have_the_mean_of_their_weights_and_not_of_their_outputs(x):
    ffns = [random_ffn(4, seed) for seed in (1, 2, 3)]
    combined = average_ffns(ffns)
    assert torch.allclose(combined.fc2_weight, sum(ffn.fc2_weight for ffn in ffns) / 3)
    assert torch.allclose(combined.fc1_bias, sum(ffn.fc1_bias for ffn in ffns) / 3)
    outputs = sum(apply(ffn, x, torch.relu) for ffn in ffns) / 3
    assert not torch.allclose(apply(combined, x, torch.relu), outputs, atol=1e-3)


def test_widened_ffn_is_the_same_function_and_can_be_trained(x):
    ffn = random_ffn(4, 1)
    wide = widen(ffn, 9, torch.Generator().manual_seed(1))
    assert wide.width == 9
    assert torch.equal(wide.fc1_weight[:4], ffn.fc1_weight)
    assert torch.allclose(apply(wide, x, torch.relu), apply(ffn, x, torch.relu), atol=1e-12, rtol=0)
    weights = FFN(*(weight.clone().requires_grad_() for weight in wide))
    apply(weights, x, torch.relu).pow(2).sum().backward()
    assert weights.fc2_weight.grad[:, 4:].abs().sum(0).min() > 0  # every new unit gets a gradient


def test_zero_ffn_gives_zero(x):
    nothing = zero(DIM, 8, torch.Generator().manual_seed(1))
    assert torch.equal(apply(nothing, x, torch.nn.functional.gelu), torch.zeros_like(x))
    assert nothing.width == 8
    assert nothing.fc1_weight.abs().min() > 0


def test_mean_of_equal_tensors_is_bitwise_the_tensor():
    tensor = torch.randn(1000)
    assert all(torch.equal(mean([tensor] * n).float(), tensor) for n in range(1, 20))


def test_blocks_of_equal_values_count_once():
    one, two = torch.ones(2), torch.zeros(2)
    blocks = [(0, [one]), (1, [two]), (2, [one.clone()]), (3, [torch.ones(3)])]
    assert [number for number, _ in different(blocks)] == [0, 1, 3]
