"""Shared weights are stored once, filled in when they are read, and refused where a checkpoint has them apart."""

import pytest
import torch
from models_for_tests import TINY_ARCHS, all_weights, make_batch, make_model

from owf_fairseq.checkpoint import fill_in, tied_names
from owf_fairseq.errors import InputError

BATCH = make_batch([7, 3], [4, 6])


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_every_tensor_is_stored_once_and_read_back(arch):
    model, other = make_model(arch, "--share-all-embeddings"), make_model(arch, "--share-all-embeddings", seed=8)
    state = model.state_dict()
    assert len({tensor.data_ptr() for tensor in state.values() if tensor.numel() > 1}) == len(
        [tensor for tensor in state.values() if tensor.numel() > 1]
    )
    assert {name for name, _ in model.named_parameters()} <= set(state)
    kept = dict(state)
    other.load_state_dict(state, strict=True)
    assert dict(state) == kept  # what is read is not changed
    with torch.no_grad():
        assert torch.equal(other.eval()(**BATCH)[0], model.eval()(**BATCH)[0])


def test_a_missing_weight_is_still_an_error():
    model = make_model("owf_tiny_shared_enc")
    state = model.state_dict()
    del state["encoder.layers.0.fc1.weight"]
    with pytest.raises(RuntimeError, match="encoder.layers.0.fc1.weight"):
        model.load_state_dict(state, strict=True)


def test_equal_copies_load_and_different_ones_are_refused_by_name():
    model = make_model("owf_tiny_shared_enc")
    copies = {name: tensor.clone() for name, tensor in all_weights(model).items()}
    model.load_state_dict(copies, strict=True)
    copies["encoder.layers.3.fc1.weight"][5, 7] += 0.25
    copies["encoder.layers.4.fc2.bias"][0] = float("nan")
    before = model.encoder.layers[0].fc1.weight.clone()
    for strict in (True, False):
        with pytest.raises(InputError) as error:
            model.load_state_dict(copies, strict=strict)
        weight, bias, way_out = error.value.problems
        assert "encoder.layers.0.fc1.weight and encoder.layers.3.fc1.weight are one weight" in weight
        assert weight.endswith("differ by up to 0.25")
        assert "encoder.layers.4.fc2.bias" in bias
        assert bias.endswith("differ by up to inf")
        assert "the arch that it was trained with" in way_out
    assert torch.equal(model.encoder.layers[0].fc1.weight, before)


def test_an_individual_checkpoint_does_not_load_into_a_model_that_shares():
    with pytest.raises(InputError, match="are one weight in this model"):
        make_model("owf_tiny_shared_enc_dec").load_state_dict(make_model("owf_tiny").state_dict())


def test_a_further_name_alone_is_enough():
    model = make_model("owf_tiny_shared_enc")
    state = model.state_dict()
    value = state.pop("encoder.layers.0.fc1.weight")
    state["encoder.layers.2.fc1.weight"] = value
    assert fill_in(model, state)["encoder.layers.5.fc1.weight"] is not None
    model.load_state_dict(state, strict=True)


def test_names_are_those_of_the_first_layer_that_uses_the_tensor():
    further = tied_names(make_model("owf_tiny_cycle_2"))
    assert further["encoder.layers.1.fc2.bias"] == ["encoder.layers.3.fc2.bias", "encoder.layers.5.fc2.bias"]
    assert "encoder.layers.4.final_layer_norm.weight" in further["encoder.layers.0.final_layer_norm.weight"]
    assert not any(name.startswith("decoder.layers") for name in further)
