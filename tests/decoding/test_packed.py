"""Packed matrices: the same translations, and every shared matrix packed once."""

import pytest
import torch
from models_for_tests import TINY_ARCHS
from torch import nn

from owf_fairseq import compat
from owf_fairseq.decoding import packed
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.decoding.packed import PackedLinear, pack
from owf_fairseq.decoding.search import SearchOptions

pytestmark = pytest.mark.skipif(not compat.can_pack(), reason="this torch has no packed products of oneDNN")


@pytest.fixture
def pack_all(monkeypatch):
    """Small matrices too."""
    monkeypatch.setattr(packed, "LEAST", 1)


@pytest.mark.usefixtures("pack_all")
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_translations_are_the_same(arch):
    fast, plain = (FairseqBackend.from_arch(arch, 80, cpu=True, packed=packed) for packed in (True, False))
    assert any(isinstance(module, PackedLinear) for module in fast.models[0].modules())
    assert not any(isinstance(module, PackedLinear) for module in plain.models[0].modules())
    batch = [[f"w{n}" for n in range(start, start + length)] for start, length in ((1, 9), (20, 3), (30, 1))]
    options = SearchOptions(nbest=3, max_len_a=1, max_len_b=2)
    for found, expected in zip(fast.search(batch, options), plain.search(batch, options), strict=True):
        assert [one.pieces for one in found] == [one.pieces for one in expected]
        for one, other in zip(found, expected, strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-3)


@pytest.mark.usefixtures("pack_all")
def test_every_matrix_of_ffns_and_of_the_decoder_is_packed_and_shared_ones_once(monkeypatch):
    packings = []
    pack_matrix = compat.pack_matrix
    monkeypatch.setattr(compat, "pack_matrix", lambda *args: packings.append(args) or pack_matrix(*args))
    backend = FairseqBackend.from_arch("owf_tiny_shared_enc_dec", 80, cpu=True)
    (model,) = backend.models
    assert len(packings) == len({id(m) for m in model.modules() if isinstance(m, PackedLinear)}) > 10
    layers = [*model.encoder.layers, *model.decoder.layers]
    assert len({id(layer.fc1) for layer in layers}) == len({id(layer.fc2) for layer in layers}) == 1
    left = [name for name, module in model.named_modules() if type(module) is nn.Linear]
    assert left
    assert all(name.startswith("encoder.layers.") and ".self_attn." in name for name in left)


def test_any_number_of_rows_and_no_bias():
    torch.manual_seed(1)
    for bias in (True, False):
        linear = nn.Linear(48, 96, bias=bias)
        fast = PackedLinear(linear)
        for shape in ((1, 48), (5, 1, 48), (64, 3, 48), (0, 48)):
            x = torch.randn(shape)
            with torch.no_grad():
                assert torch.allclose(fast(x), linear(x), atol=1e-5)


def test_small_matrices_are_not_worth_it():
    backend = FairseqBackend.from_arch("owf_tiny", 3000, cpu=True)
    found = {name for name, module in backend.models[0].named_modules() if isinstance(module, PackedLinear)}
    assert found == {"decoder.output_projection"}


@pytest.mark.usefixtures("pack_all")
def test_quantised_and_other_modules_are_left_as_they_are():
    class Other(nn.Linear):
        pass

    model = nn.Module()
    model.encoder = nn.Sequential(Other(4, 4), nn.Linear(4, 4))
    pack(model)
    assert type(model.encoder[0]) is Other
    assert type(model.encoder[1]) is PackedLinear
