"""What a model's flags must not be: impossible numbers, and combinations that fairseq cannot do right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from owf_fairseq.flags import (
    LARGEST_OF_BOTH,
    LARGEST_SIZES,
    NOT_IN_ONE_STACK,
    READ_OF_EVERY_MODEL,
    TARGET_POSITIONS,
    flag_name,
)


class HasFlags(Protocol):
    """A namespace after an arch function: every flag of fairseq's transformer and of ours has a value."""

    encoder_layers: int
    decoder_layers: int
    decoder_only: bool

    def __getattr__(self, name: str) -> Any: ...


def impossible_numbers(args: HasFlags) -> list[str]:
    """Sizes that describe no model, or none that could be built: nothing is made of any size before this."""
    problems = []
    for name, largest in LARGEST_OF_BOTH.items():
        value = getattr(args, name, None)
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            value = int(value)  # fairseq's parser leaves some numbers as text
        if value is not None and not (type(value) is int and 1 <= value <= largest):
            problems.append(f"`{flag_name(name)}` must be a number from 1 to {largest:,}, but is {value!r}")
    for stack in ("decoder",) if args.decoder_only else ("encoder", "decoder"):
        for name in ("layers", "embed_dim", "ffn_embed_dim", "attention_heads"):
            value = getattr(args, f"{stack}_{name}")
            if type(value) is not int:
                problems.append(f"`{flag_name(f'{stack}_{name}')}` must be a whole number, but is {value!r}")
            elif value > LARGEST_SIZES[name]:
                problems.append(
                    f"`{flag_name(f'{stack}_{name}')}` must be at most {LARGEST_SIZES[name]:,}, but is {value}"
                )
            elif value < 1:
                instead = f"; `--{stack}-ffn none` drops the FFN" if name == "ffn_embed_dim" and value == 0 else ""
                problems.append(f"`{flag_name(f'{stack}_{name}')}` must be at least 1, but is {value}{instead}")
        heads, embed_dim = getattr(args, f"{stack}_attention_heads"), getattr(args, f"{stack}_embed_dim")
        if type(heads) is type(embed_dim) is int and heads > 0 and embed_dim % heads:
            problems.append(
                f"`--{stack}-attention-heads` must divide `--{stack}-embed-dim`, but they are {heads} and {embed_dim}"
            )
    return problems


def not_in_one_stack(args: HasFlags) -> list[str]:
    """What a decoder-only model has not, or cannot do right."""
    problems = []
    if args.target_positions not in TARGET_POSITIONS:
        problems.append(
            f"`--target-positions` must be one of {', '.join(TARGET_POSITIONS)}, but is '{args.target_positions}'"
        )
    if not args.share_all_embeddings:
        problems.append("a decoder-only model has one matrix for source, target and output: `--share-all-embeddings`")
    for name, (usual, why) in NOT_IN_ONE_STACK.items():
        if (getattr(args, name, None) or usual) != usual:
            problems.append(f"`{flag_name(name)}` is not for a decoder-only model: {why}")
    for name in READ_OF_EVERY_MODEL:
        if getattr(args, f"encoder_{name}", None) != getattr(args, f"decoder_{name}", None):
            flags = [flag_name(f"{stack}_{name}") for stack in ("encoder", "decoder")]
            problems.append(f"`{flags[0]}` is not for a decoder-only model: its one stack takes `{flags[1]}`")
    return problems


def one_ffn_for_both_stacks(
    args: HasFlags, widths: Mapping[str, Sequence[int]], blocks: Mapping[str, int]
) -> list[str]:
    """What stands in the way of one FFN that serves encoder and decoder.

    Args:
        args: the model's flags.
        widths: by stack, d_ff of each layer's FFN. blocks: by stack, how many FFNs there are.
    """
    problems = []
    for name in ("encoder_ffn", "decoder_ffn"):
        if blocks[name.split("_")[0]] != 1:
            problems.append(
                f"`--share-encoder-decoder-ffn` (part of archs named shared_enc_dec) needs `{flag_name(name)} shared`, "
                f"but it is '{getattr(args, name)}'; use an arch without it, such as shared_enc_shared_dec"
            )
    for name in ("embed_dim", "normalize_before"):
        encoder, decoder = getattr(args, f"encoder_{name}"), getattr(args, f"decoder_{name}")
        if encoder != decoder:
            problems.append(
                f"`--share-encoder-decoder-ffn` needs the same `{flag_name('encoder_' + name)}` and "
                f"`{flag_name('decoder_' + name)}`, but they are {encoder} and {decoder}"
            )
    encoder, decoder = (max(widths[stack], default=0) for stack in ("encoder", "decoder"))
    if encoder != decoder and all(number == 1 for number in blocks.values()):
        lists = {stack: getattr(args, f"{stack}_ffn_widths") for stack in ("encoder", "decoder")}
        flags = [f"`--{stack}-ffn-{'widths' if given else 'embed-dim'}`" for stack, given in lists.items()]
        problems.append(
            f"`--share-encoder-decoder-ffn` needs the same {' and '.join(flags)}, but they are {encoder} and {decoder}"
        )
    return problems


def unsupported(args: HasFlags, *, vanilla: bool, shares: bool, terms: bool) -> list[str]:
    """Options of fairseq that it cannot do right with these blocks: refused, with the reason, rather than wrong.

    Args:
        args: the model's flags.
        vanilla: whether every layer has blocks of its own, and all of them. shares: whether a block serves several.
        terms: whether layers add terms of their own to a shared FFN.
    """

    def given(name: str) -> Any:
        return getattr(args, name, None)

    problems = []
    if given("ddp_backend") == "fully_sharded":
        problems.append(
            "`--ddp-backend fully_sharded` is not supported: it shards layer by layer, and a shared block has no one "
            "layer; use `--ddp-backend legacy_ddp` or `pytorch_ddp`"
        )
    if given("base_layers"):
        problems.append("`--base-layers` is not supported: no pattern describes the FFN of a BASE layer; leave it out")
    if given("cross_self_attention"):
        problems.append("`--cross-self-attention` is not supported; leave it out")
    for name in () if vanilla else ("encoder_layers_to_keep", "decoder_layers_to_keep"):
        if given(name):
            problems.append(
                f"`{flag_name(name)}` cannot be combined with shared or dropped blocks, or FFNs of different widths: "
                "it removes layers after the pattern has been laid out over all of them; train with the smaller number "
                "of layers instead"
            )
    if not shares and not args.decoder_only:
        return problems
    for name in () if not shares else ("quant_noise_scalar", "quantization_config_path"):
        if given(name):
            problems.append(
                f"`{flag_name(name)}` cannot be combined with shared blocks: fairseq quantises a shared block in its "
                "first layer only; leave it out"
            )
    if terms and given("quant_noise_pq"):
        problems.append(
            "`--quant-noise-pq` cannot be combined with `--ffn-per-layer` bias, scale or lora: the layers have one "
            "weight and each its own terms; leave it out"
        )
    checkpointed = given("checkpoint_activations") or given("offload_activations")
    if checkpointed and given("ddp_backend") in ("pytorch_ddp", "c10d") and world_size() > 1:
        what = "shared blocks" if shares else "a decoder-only model, which uses a block for source and target,"
        problems.append(
            f"`--checkpoint-activations` with {what} needs `--ddp-backend legacy_ddp`: under "
            f"'{given('ddp_backend')}' a shared weight is marked ready more than once"
        )
    return problems


def world_size() -> int:
    """Number of processes that train together; 1 where training is not distributed."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if distributed else 1
