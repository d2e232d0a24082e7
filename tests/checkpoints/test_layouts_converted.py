"""Layouts drawn at random become models with a block a layer, and plain fairseq's, that compute the same."""

import pytest
import torch
from fairseq import models
from layouts_for_tests import SEEDS, draw_layout
from models_for_tests import PAD, checkpoint_of, make_batch, make_task
from omegaconf import OmegaConf

from owf_fairseq.checkpoints.convert import convert
from owf_fairseq.checkpoints.inspection import inspect
from owf_fairseq.checkpoints.stored_model import describe_state
from owf_fairseq.errors import InputError

BATCH = make_batch([5, 3], [4, 6])
SEEN = BATCH["prev_output_tokens"].ne(PAD)


def logits(model):
    model.train()(**BATCH)  # keeps fairseq 0.12.2 off its fused kernel
    with torch.no_grad():
        return model.eval()(**BATCH)[0][SEEN]


def load(converted):
    flags = converted.state["cfg"]["model"]
    model = models.build_model(OmegaConf.create(flags) if isinstance(flags, dict) else flags, make_task()).double()
    model.load_state_dict(converted.state["model"], strict=True)
    return model


def begins_with_nothing(layout):
    """Whether a post-norm stack has no self-attention in its first layer, and nothing normalises before that."""
    args, plan = layout.args, layout.plan
    first = {"encoder": plan.encoder_self_attn[:1], "decoder": plan.decoder_self_attn[:1]}
    post_norm = [stack for stack in first if not getattr(args, f"{stack}_normalize_before")]
    return not args.layernorm_embedding and any(first[stack] == [None] for stack in post_norm)


@pytest.mark.parametrize("seed", SEEDS)
def test_untied_exactly(seed):
    layout = draw_layout(seed)
    model = layout.build()
    for module in model.modules():
        module.p = 0.0  # no dropout: the step in training mode is for fairseq's sake
    source = describe_state(checkpoint_of(model, layout.args), "source.pt")
    assert source.plan == layout.plan
    assert not source.faults
    expected = logits(model)
    converted = convert(source, "individual")
    assert converted.exact
    assert torch.allclose(logits(load(converted)), expected, atol=1e-6)
    same = convert(source, layout.arch, [flag for flag in layout.flags if "=" in flag or "share-encoder" in flag])
    assert same.exact
    assert torch.equal(logits(load(same)), expected)
    if layout.args.decoder_only:
        return
    if begins_with_nothing(layout):
        with pytest.raises(InputError, match="begins with a sublayer that was dropped"):
            convert(source, "fairseq")
        return
    plain = convert(source, "fairseq")
    assert plain.exact
    assert torch.allclose(logits(load(plain)), expected, atol=1e-3)  # norms of what is normalised: their epsilon


def test_a_layout_is_inspected(tmp_path):
    layout = draw_layout(8)
    model = layout.build()
    torch.save(checkpoint_of(model, layout.args), tmp_path / "model.pt")
    found = inspect(tmp_path / "model.pt")
    assert found.configuration is None
    assert found.parameters == sum(p.numel() for p in model.parameters())
    assert found.blocks["decoder cross-attention"] == layout.plan.decoder_cross_attn
    assert not found.ties
