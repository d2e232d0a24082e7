"""Contracts 2 and 3: what is shared is one, what is dropped is gone; over every tiny architecture."""

import copy

import pytest
import torch
from models_for_tests import TINY_ARCHS, all_weights, make_batch, make_model, parse, reference_logits, untied_flags

from owf_fairseq.plan import make_plan

NORMS = {"post-norm": [], "pre-norm": ["--encoder-normalize-before", "--decoder-normalize-before"]}
SHARING = [arch for arch in TINY_ARCHS if make_plan(parse(arch)).shares]
BATCH = make_batch([7, 3, 5], [4, 6, 2])
TARGET_IS_TEXT = BATCH["prev_output_tokens"].ne(1)


def shared_groups(model):
    """Names of parameters that are one and the same tensor, the first name first."""
    groups = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), []).append(name)
    return sorted(names for names in groups.values() if len(names) > 1)


def test_there_are_architectures():
    assert len(TINY_ARCHS) >= 23
    assert len(SHARING) >= 18
    assert not {"owf_tiny", "owf_tiny_no_enc", "owf_tiny_no_dec", "owf_tiny_no_enc_no_dec"} & set(SHARING)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_equals_plain_pytorch(arch, norm):
    model = make_model(arch, *NORMS[norm]).eval().double()
    with torch.no_grad():
        found = model(**BATCH)[0]
        expected = reference_logits(model, BATCH)
    # not closer: outside torch's own attention, fairseq computes the softmax in float32 whatever the weights are
    assert torch.allclose(found[TARGET_IS_TEXT], expected[TARGET_IS_TEXT], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_dropped_ffn_leaves_nothing_behind(arch):
    args = parse(arch)
    names = [name for name, _ in make_model(arch).named_parameters(remove_duplicate=False)]
    for stack in ("encoder", "decoder"):
        parts = [n for n in names if n.startswith(f"{stack}.") and any(p in n for p in (".fc1.", ".fc2.", ".final_"))]
        assert bool(parts) == (getattr(args, f"{stack}_ffn") != "none")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("arch", SHARING)
def test_shared_block_equals_copies_and_collects_their_gradients(arch, norm):
    shared = make_model(arch, *NORMS[norm]).double()
    args = parse(arch, *NORMS[norm])
    copies = make_model("owf_tiny", *untied_flags(args), seed=9).double()
    copies.load_state_dict(all_weights(shared), strict=True)

    outputs = []
    for model in (shared, copies):
        model.eval()
        output = model(**BATCH)[0][TARGET_IS_TEXT]
        output.pow(2).sum().backward()
        outputs.append(output)
    assert torch.allclose(*outputs, rtol=1e-12, atol=1e-12)

    gradients = {name: p.grad for name, p in copies.named_parameters()}
    groups = {}
    for name, parameter in shared.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), (parameter, []))[1].append(name)
    assert any(len(names) > 1 for _, names in groups.values())
    for parameter, names in groups.values():
        total = sum(gradients[name] for name in names)
        assert torch.allclose(parameter.grad, total, rtol=1e-9, atol=1e-9 * total.abs().max().item()), names


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_pattern_decides_what_is_one_tensor(arch):
    """Layers that the pattern gives the same block have the same tensors, all of them, and other layers others."""
    plan = make_plan(parse(arch))
    model = make_model(arch)
    n = len(model.encoder.layers)
    layers = [*model.encoder.layers, *model.decoder.layers]

    def numbers(objects):
        seen = {}
        return [None if o is None else seen.setdefault(id(o), len(seen)) for o in objects]

    def same_blocks(found, pattern):
        seen = {}
        assert found == [None if b is None else seen.setdefault(b, len(seen)) for b in pattern]

    for name in ("fc1", "fc2", "final_layer_norm"):
        same_blocks(numbers([getattr(layer, name, None) for layer in layers]), plan.ffn)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        same_blocks(numbers([getattr(layer.self_attn, name) for layer in layers[:n]]), plan.encoder_self_attn)
        same_blocks(numbers([getattr(layer.self_attn, name) for layer in layers[n:]]), plan.decoder_self_attn)
        same_blocks(numbers([getattr(layer.encoder_attn, name) for layer in layers[n:]]), plan.decoder_cross_attn)
    everyones_own = [layer.self_attn for layer in layers] + [layer.encoder_attn for layer in layers[n:]]
    everyones_own += [layer.self_attn_layer_norm for layer in layers]
    everyones_own += [layer.encoder_attn_layer_norm for layer in layers[n:]]
    assert len({id(module) for module in everyones_own}) == len(everyones_own)


@pytest.mark.parametrize("arch", SHARING)
def test_identity_survives(arch):
    model = make_model(arch)
    groups = shared_groups(model)
    assert groups
    model.load_state_dict(make_model(arch, seed=4).state_dict())
    assert shared_groups(model) == groups
    assert shared_groups(copy.deepcopy(model)) == groups
    assert shared_groups(model.half()) == groups
    assert shared_groups(model.float()) == groups


def test_layer_norm_of_a_shared_ffn_per_layer_on_request():
    shared, own = (make_model("owf_tiny_shared_enc_dec", "--ffn-layer-norm", how) for how in ("shared", "per-layer"))
    one = {id(layer.final_layer_norm) for layer in shared.encoder.layers}
    many = {id(layer.final_layer_norm) for stack in (own.encoder, own.decoder) for layer in stack.layers}
    assert (len(one), len(many)) == (1, 12)
    assert len({id(layer.fc1) for stack in (own.encoder, own.decoder) for layer in stack.layers}) == 1
    difference = sum(p.numel() for p in own.parameters()) - sum(p.numel() for p in shared.parameters())
    assert difference == 11 * 2 * 64


def test_attention_objects_of_shared_projections_keep_their_hooks_apart():
    model = make_model("owf_tiny_attention_sss").eval()
    calls = []
    model.decoder.layers[2].self_attn.register_forward_hook(lambda *_: calls.append(2))
    model(**BATCH)
    assert calls == [2]
