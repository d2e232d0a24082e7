"""Conversions: what is said to be exact is, the rest starts from what it says, and what fits no target is refused."""

import pytest
import torch
from fairseq import models
from models_for_tests import all_weights, checkpoint_of, make_batch, make_model, make_task, parse, trained_weights
from omegaconf import OmegaConf

from owf_fairseq.checkpoints.convert import convert
from owf_fairseq.checkpoints.stored_model import describe_state
from owf_fairseq.errors import InputError
from owf_fairseq.models import OwfTransformerModel

BATCH = make_batch([7, 3, 5], [4, 6, 2])
SHARE = ["--share-all-embeddings"]
PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
NORMS = pytest.mark.parametrize("norm", [[], PRE_NORM], ids=["post-norm", "pre-norm"])


def stored(arch, *flags, seed=1):
    """A model with random weights, and the checkpoint of it."""
    model = make_model(arch, *SHARE, *flags, seed=seed)
    return model, describe_state(checkpoint_of(model, parse(arch, *SHARE, *flags)), "source.pt")


def load(converted):
    """The model that fairseq builds of a converted checkpoint and fills with it, strictly."""
    flags = converted.state["cfg"]["model"]
    model = models.build_model(OmegaConf.create(flags) if isinstance(flags, dict) else flags, make_task())
    model.load_state_dict(converted.state["model"], strict=True)
    return model


def outputs(model):
    model.train()(**BATCH)  # after a training step fairseq 0.12.2 keeps off its fused kernel, which torch 2.13 refuses
    with torch.no_grad():
        return model.eval()(**BATCH)[0]


def assert_same(one, other, tolerance=0.0):
    difference = (outputs(one) - outputs(other)).abs().max().item()
    assert difference <= tolerance


UNTIED = ["shared_enc", "shared_enc_dec", "one_wide_ffn", "no_enc", "cycle_rev_3", "attention_sss", "no_enc_no_dec"]


@NORMS
@pytest.mark.parametrize("configuration", UNTIED)
def test_individual_unties_exactly_and_drops_stay(configuration, norm):
    model, source = stored(f"owf_tiny_{configuration}", *norm)
    converted = convert(source, "individual")
    assert converted.exact
    assert converted.arch == converted.state["cfg"]["model"]._name == "owf_tiny"
    untied = load(converted)
    assert_same(model, untied)
    blocks = [
        layer.fc1.weight
        for stack in (untied.encoder, untied.decoder)
        for layer in stack.layers
        if layer.has_feed_forward
    ]
    assert len({id(weight) for weight in blocks}) == len(blocks)
    tensors = [tensor for tensor in converted.state["model"].values() if tensor.numel() > 1]
    assert len({tensor.data_ptr() for tensor in tensors}) == len(tensors)


@NORMS
@pytest.mark.parametrize("configuration", ["shared_enc_dec", "one_wide_ffn", "no_enc_no_dec", "attention_sss"])
def test_plain_fairseq_computes_the_same(configuration, norm):
    model, source = stored(f"owf_tiny_{configuration}", *norm)
    converted = convert(source, "fairseq")
    assert converted.exact
    plain = load(converted)
    assert not isinstance(plain, OwfTransformerModel)
    assert plain.__class__.__module__.startswith("fairseq.")
    assert_same(model, plain, 1e-5)
    dropped = configuration in ("one_wide_ffn", "no_enc_no_dec")
    assert any("gives 0" in step.how for step in converted.steps) == dropped


def test_a_layer_norm_that_moves_takes_gain_and_bias_along():
    """Without the move of gain and bias the post-norm result would be another function."""
    model, source = stored("owf_tiny_no_dec")
    plain = load(convert(source, "fairseq"))
    moved = model.decoder.layers[2].encoder_attn_layer_norm
    assert torch.equal(plain.decoder.layers[2].final_layer_norm.weight, moved.weight)
    assert torch.equal(plain.decoder.layers[2].encoder_attn_layer_norm.bias, torch.zeros(64))


def test_there_and_back_is_bitwise():
    model, source = stored("owf_tiny_cycle_2")
    untied = describe_state(convert(source, "individual").state, "untied.pt")
    for init in ("mean", "concat"):
        back = convert(untied, "owf_tiny_cycle_2", init=init)
        assert back.exact
        before, after = (trained_weights(all_weights(one)) for one in (model, load(back)))
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)


def test_vanilla_model_of_fairseq_is_a_source():
    flags = ["--encoder-embed-dim", "64", "--encoder-ffn-embed-dim", "128", "--encoder-attention-heads", "2"]
    flags += ["--decoder-attention-heads", "2"]
    model, source = stored("transformer", *flags)
    converted = convert(source, "owf_tiny")
    assert converted.exact
    assert converted.flags == SHARE
    assert_same(model, load(converted))
    assert convert(source, "individual").arch == "owf_tiny"
    assert convert(source, "owf_tiny_one_wide_ffn", init="concat").arch == "owf_tiny_one_wide_ffn"


def encoder_ffn(model, layer, x):
    part = model.encoder.layers[layer]
    return part.fc2(torch.relu(part.fc1(x)))


@pytest.mark.parametrize(("arch", "added"), [("owf_tiny_one_wide_ffn", 768), ("owf_tiny_shared_enc", 0)])
def test_concat_gives_the_mean_of_the_outputs(arch, added):
    """The One Wide FFN is twice as wide as the encoder's six: the rest changes nothing."""
    model, source = stored("owf_tiny")
    converted = convert(source, arch, [] if added else ["--encoder-ffn-embed-dim", "768"], init="concat")
    assert not converted.exact
    (step,) = (step for step in converted.steps if step.block == "encoder FFN")
    assert not step.exact
    assert (f"{added} units added" in step.how) == bool(added)
    wide = load(converted).eval()
    x = torch.randn(5, 64)
    with torch.no_grad():
        expected = sum(encoder_ffn(model, layer, x) for layer in range(6)) / 6
        assert torch.allclose(encoder_ffn(wide, 0, x), expected, atol=1e-5)
    norms = [model.encoder.layers[layer].final_layer_norm.weight for layer in range(6)]
    assert torch.allclose(wide.encoder.layers[3].final_layer_norm.weight, sum(norms) / 6)


def test_mean_gives_the_mean_of_the_weights():
    model, source = stored("owf_tiny")
    shared = load(convert(source, "owf_tiny_shared_enc_dec"))
    layers = [*model.encoder.layers, *model.decoder.layers]
    for name in ("fc1.weight", "fc2.bias", "final_layer_norm.weight"):
        expected = sum(layer.state_dict()[name].double() for layer in layers) / 12
        assert torch.equal(shared.state_dict()[f"encoder.layers.0.{name}"], expected.float())
    wide = load(convert(source, "owf_tiny_one_wide_ffn"))
    assert torch.equal(wide.encoder.layers[0].fc2.weight[:, 128:], torch.zeros(64, 1536 - 128))


def test_per_layer_norms_stay_each_layers_own():
    model, source = stored("owf_tiny")
    converted = load(convert(source, "owf_tiny_shared_enc", ["--ffn-layer-norm", "per-layer"]))
    for mine, before in zip(converted.encoder.layers, model.encoder.layers, strict=True):
        assert torch.equal(mine.final_layer_norm.weight, before.final_layer_norm.weight)


def test_a_norm_that_becomes_the_mean_is_not_exact():
    _, source = stored("owf_tiny_shared_enc", "--ffn-layer-norm", "per-layer")
    converted = convert(source, "owf_tiny_shared_enc")
    (step,) = (step for step in converted.steps if step.block == "encoder FFN")
    assert not step.exact
    assert step.how == "as before; the mean of their layer norms"


def test_an_ffn_for_layers_that_had_none_is_not_exact():
    _, source = stored("owf_tiny_shared_enc_no_dec")
    converted = convert(source, "owf_tiny_shared_enc_dec")
    assert [step.exact for step in converted.steps if step.block.endswith("FFN")] == [False, False]
    assert "used by layers that had none" in converted.steps[-1].how


def test_attention_becomes_the_mean_of_its_projections():
    model, source = stored("owf_tiny")
    converted = convert(source, "owf_tiny_attention_iis")
    assert {step.block for step in converted.steps if not step.exact} == {"decoder cross-attention"}
    weights = load(converted).state_dict()
    projections = [layer.encoder_attn.k_proj.weight.double() for layer in model.decoder.layers]
    assert torch.equal(weights["decoder.layers.0.encoder_attn.k_proj.weight"], (sum(projections) / 6).float())
    norms = [f"decoder.layers.{n}.encoder_attn_layer_norm.weight" for n in range(6)]
    assert all(torch.equal(weights[name], all_weights(model)[name]) for name in norms)


def test_dropped_is_said_to_be_approximate():
    _, source = stored("owf_tiny")
    converted = convert(source, "owf_tiny_no_dec")
    assert [(step.block, step.exact, step.layers) for step in converted.steps][-1] == (
        "decoder FFN",
        False,
        [*range(6)],
    )
    assert converted.steps[-1].how == "dropped"
    assert not any(name.startswith("decoder.layers") and ".fc1." in name for name in converted.state["model"])


def test_half_precision_stays():
    model, source = stored("owf_tiny")
    source.state["model"] = {name: tensor.half() for name, tensor in source.state["model"].items()}
    converted = convert(source, "owf_tiny_one_wide_ffn", init="concat")
    floats = [tensor for tensor in converted.state["model"].values() if tensor.is_floating_point()]
    assert {tensor.dtype for tensor in floats} == {torch.float16}


def test_different_copies_of_a_tied_weight_can_be_converted():
    """The way out that the refusal of such a checkpoint names."""
    _, source = stored("owf_tiny_shared_enc")
    source.state["model"]["encoder.layers.3.fc1.bias"] = torch.zeros(128)
    converted = convert(source, "owf_tiny_shared_enc")
    assert not converted.exact
    load(converted)


def test_training_starts_afresh():
    _, source = stored("owf_tiny")
    state = convert(source, "owf_tiny_no_dec").state
    assert "last_optimizer_state" not in state
    assert state["optimizer_history"][-1]["num_updates"] == 0
    assert state["extra_state"]["train_iterator"]["epoch"] == 1
    assert state["extra_state"]["converted_from"]["arch"] == "owf_tiny"
    assert source.state["optimizer_history"][-1]["num_updates"] == 7  # the source is not changed
    assert source.state["cfg"]["model"].arch == "owf_tiny"


@pytest.mark.parametrize(
    ("arch", "to", "flags", "init", "problem"),
    [
        ("owf_tiny", "owf_tiny_shared_enc", [], "concat", "give `--encoder-ffn-embed-dim 768`"),
        ("owf_tiny", "owf_tiny_shared_dec", ["--decoder-ffn-embed-dim", "64"], "mean", "`--decoder-ffn-embed-dim 128`"),
        ("owf_tiny_one_wide_ffn", "owf_tiny", [], "mean", "`--encoder-ffn-embed-dim 1536`"),
        ("owf_tiny", "owf_deep_shallow_no_dec", [], "mean", "`--encoder-layers` is 12 in owf_deep_shallow_no_dec"),
        ("owf_tiny", "owf_tiny_no_dec", ["--activation-fn", "gelu"], "mean", "`--activation-fn` is relu in source.pt"),
        ("owf_tiny", "owf_tinny", [], "mean", "there is no arch 'owf_tinny'"),
        ("owf_tiny", "fairseq", ["--encoder-ffn", "shared"], "mean", "`--to fairseq` takes no flags"),
        ("owf_tiny", "owf_tiny_no_dec", [], "median", "`--init` must be one of mean, concat"),
        ("owf_tiny_no_dec", "owf_tiny_shared_dec", [], "mean", "give `--ffn-layer-norm per-layer`"),
        ("owf_tiny", "owf_tiny_no_dec", ["--encoder-ffn", "cycle-7"], "mean", "7 blocks for 6 layers"),
    ],
)
def test_refused_with_the_flag(arch, to, flags, init, problem):
    _, source = stored(arch)
    with pytest.raises(InputError) as error:
        convert(source, to, flags, init)
    assert problem in str(error.value)


def test_ffns_of_two_widths_have_no_mean():
    _, source = stored("owf_tiny", "--decoder-ffn-embed-dim", "64")
    with pytest.raises(InputError, match="have no mean: use `--init concat`"):
        convert(source, "owf_tiny_shared_enc_dec")
    flags = ["--encoder-ffn-embed-dim", "1152", "--decoder-ffn-embed-dim", "1152"]
    assert load(convert(source, "owf_tiny_shared_enc_dec", flags, "concat")).encoder.layers[0].fc1.out_features == 1152


def test_a_layer_without_ffn_gets_one_that_changes_nothing():
    model, source = stored("owf_tiny_no_dec", *PRE_NORM)
    for to in ("owf_tiny", "owf_tiny_shared_dec"):
        converted = convert(source, to)
        assert converted.exact
        assert_same(model, load(converted))
    model, source = stored("owf_tiny_no_dec")
    assert_same(model, load(convert(source, "owf_tiny")), 1e-5)


def test_a_model_that_was_stripped_for_publication_is_a_source():
    model, source = stored("owf_tiny_shared_enc")
    for key in ("optimizer_history", "extra_state", "criterion", "task_state"):
        source.state.pop(key, None)
    source.state["cfg"].pop("common", None)
    converted = convert(source, "individual")
    assert_same(model, load(converted))
    assert converted.state["optimizer_history"][-1]["num_updates"] == 0
    assert converted.state["cfg"]["common"]["user_dir"]


def test_weights_that_are_not_those_of_the_flags_are_refused():
    _, source = stored("owf_tiny")
    source.state["model"]["decoder.layers.6.fc1.bias"] = torch.zeros(128)
    with pytest.raises(InputError, match=r"source.pt has decoder.layers.6.fc1.bias, which the model has not"):
        convert(source, "individual")


def test_flags_that_describe_no_model_are_refused():
    _, source = stored("owf_tiny")
    source.state["cfg"]["model"].encoder_layers = "six"
    with pytest.raises(InputError, match="source.pt: its `--encoder-layers` must be a whole number, but is .six."):
        describe_state(source.state, "source.pt")
