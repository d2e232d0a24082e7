"""What a checkpoint holds, from the file alone: no task, no data, no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from owf_fairseq.checkpoints.checkpoint import MADE_BY, PathLike, read_checkpoint
from owf_fairseq.checkpoints.model_facts import facts_of_stored
from owf_fairseq.checkpoints.stored_model import StoredModel, describe_state, differing_flags, updates_of
from owf_fairseq.models.tied_weights import broken_ties, tied_names
from owf_fairseq.patterns import Pattern

HALF_PRECISION_OPTIMIZERS = {
    "FP16Optimizer": "--fp16",
    "MemoryEfficientFP16Optimizer": "--memory-efficient-fp16",
    "AMPOptimizer": "--amp",
}
"""fairseq's optimizers that wrap another, and the flag that asks for them; with bfloat16, a ``--bf16``."""


@dataclass(frozen=True)
class Inspection:
    """A checkpoint in facts.

    Attributes:
        file, bytes: its name and size.
        arch: that the model was made with.
        configuration: the paper's name of the blocks that it has, None if there is none, as for fairseq's own
            ``transformer``.
        layers, embed_dim, heads, norm: of the encoder and the decoder, or of the one stack; ``pre`` or ``post`` for
            the norm.
        blocks: for each kind of block the number of the block that every layer uses, None where it is dropped.
        one_ffn_for_both_stacks: whether the decoder's block is the encoder's.
        widths: d_ff of the encoder's and the decoder's FFNs, None where all are dropped, a list where they differ.
        parameters: their number, a shared tensor once.
        dtypes: how the weights are stored.
        flags: of the model, where they differ from the arch's defaults.
        ties: what is shared in the model, but not in the file; empty if all ties hold.
        tied, copies: how many tensors the model shares, and how many needless copies of them the file holds.
        faults: where the weights in the file are not those of the model, a line each.
        epoch, updates: where training was.
        score, best, metric: in validation: its own, the best until then, and of what.
        optimizer: fairseq's name of the optimizer whose state is stored; None without one.
        resume: what fairseq-train needs to go on from here, beside the flags of the training.
        made_by, made_from: of a file that one of our tools wrote.
    """

    file: str
    bytes: int
    arch: str
    configuration: str | None
    layers: dict[str, int]
    embed_dim: dict[str, int]
    heads: dict[str, int]
    norm: dict[str, str]
    blocks: dict[str, Pattern]
    one_ffn_for_both_stacks: bool
    widths: dict[str, int | list[int] | None]
    parameters: int
    dtypes: list[str]
    flags: dict[str, Any]
    ties: list[str]
    tied: int
    copies: int
    faults: list[str]
    epoch: int | None
    updates: int
    score: float | None
    best: float | None
    metric: str
    optimizer: str | None
    resume: str
    made_by: str | None
    made_from: Any


def inspect(path: PathLike) -> Inspection:
    """Reads a checkpoint and describes it.

    Raises:
        InputError: it cannot be read, or it is of another kind of model.
    """
    model = describe_state(read_checkpoint(path), str(path))
    state, args = model.state, model.args
    stored = state["model"]
    ties = tied_names(model.skeleton)
    extra = state.get("extra_state") or {}
    score, best = extra.get("val_loss"), extra.get("best")
    optimizer = _optimizer(state)
    facts = facts_of_stored([model])
    one_for_both = bool(args.share_encoder_decoder_ffn)
    first = 0 if one_for_both else args.encoder_layers
    decoder_ffn = [None if number is None else number - first for number in model.plan.ffn_of("decoder")[0]]
    no_cross_attention = args.no_cross_attention or args.decoder_only
    blocks = {
        "encoder self-attention": model.plan.encoder_self_attn,
        "encoder FFN": model.plan.ffn_of("encoder")[0],
        "decoder self-attention": model.plan.decoder_self_attn,
        "decoder cross-attention": [] if no_cross_attention else model.plan.decoder_cross_attn,
        "decoder FFN": decoder_ffn,
    }
    return Inspection(
        file=str(path),
        bytes=Path(path).stat().st_size,
        arch=model.arch,
        configuration=facts.configuration,
        layers=_by_stack(model, "layers"),
        embed_dim=_by_stack(model, "embed_dim"),
        heads=_by_stack(model, "attention_heads"),
        norm={stack: "pre" if before else "post" for stack, before in _by_stack(model, "normalize_before").items()},
        blocks={name: pattern for name, pattern in blocks.items() if pattern or not args.decoder_only},
        one_ffn_for_both_stacks=one_for_both,
        widths=facts.ffn_dims,
        parameters=facts.parameters,
        dtypes=sorted({str(t.dtype).removeprefix("torch.") for t in stored.values() if t.is_floating_point()}),
        flags=differing_flags(args, model.arch),
        ties=broken_ties(model.skeleton, stored),
        tied=len(ties),
        copies=sum(len([name for name in (first, *names) if name in stored]) - 1 for first, names in ties.items()),
        faults=model.faults,
        epoch=(extra.get("train_iterator") or {}).get("epoch"),
        updates=updates_of(state),
        score=None if score is None else float(score),
        best=None if best is None else float(best),
        metric=((state.get("cfg") or {}).get("checkpoint") or {}).get("best_checkpoint_metric", "loss"),
        optimizer=optimizer,
        resume=_resume(optimizer, ((state.get("cfg") or {}).get("common") or {}).get("bf16", False)),
        made_by=extra.get(MADE_BY),
        made_from=extra.get("converted_from") or extra.get("averaged"),
    )


def _by_stack(model: StoredModel, name: str) -> dict[str, Any]:
    stacks = ("decoder",) if model.args.decoder_only else ("encoder", "decoder")
    return {stack: getattr(model.args, f"{stack}_{name}") for stack in stacks}


def _optimizer(state: dict[str, Any]) -> str | None:
    if state.get("last_optimizer_state") is None:
        return None
    return (state.get("optimizer_history") or [{}])[-1].get("optimizer_name", "unknown")


def _resume(optimizer: str | None, bf16: bool) -> str:
    """What fairseq-train asks for: it goes on with the very class of optimizer that wrote the state, or not at all."""
    if optimizer is None:
        return "no optimizer state: training starts at its first update (`--finetune-from-model`)"
    flag = HALF_PRECISION_OPTIMIZERS.get(optimizer)
    if flag is not None:
        flag = flag.replace("fp16", "bf16") if bf16 else flag
        return f"goes on with `{flag}`, as it was trained; without it, give `--reset-optimizer`"
    return "goes on without `--fp16`, as it was trained; with it, give `--reset-optimizer`"


def block_numbers(pattern: Sequence[int | None]) -> str:
    """A pattern as in the README: ``0 0 1 1``, ``–`` where the block is dropped."""
    return " ".join("–" if number is None else str(number) for number in pattern)
