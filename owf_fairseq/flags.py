"""Our flags on top of fairseq's TransformerConfig, and all validation of a model's configuration."""

# no `from __future__ import annotations` here: fairseq makes its parser from the types of the dataclass

from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import torch
from fairseq.dataclass import FairseqDataclass

from owf_fairseq.errors import InputError
from owf_fairseq.sharing import Pattern, make_pattern, spellings

FFN_LAYER_NORMS = ("shared", "per-layer")
TARGET_POSITIONS = ("continue", "restart")


def _pattern_help(block: str, drops: bool) -> str:
    ignored = "; the width of a dropped FFN has no effect" if drops else ""
    return f"which layers share {block}, one of: {spellings(drops)}{ignored}"


@dataclass
class SharingFlags(FairseqDataclass):
    """What this plugin adds to fairseq's transformer flags. The FFN's width is fairseq's own ``--*-ffn-embed-dim``."""

    encoder_ffn: str = field(default="individual", metadata={"help": _pattern_help("the encoder's FFN", True)})
    decoder_ffn: str = field(default="individual", metadata={"help": _pattern_help("the decoder's FFN", True)})
    share_encoder_decoder_ffn: bool = field(
        default=False,
        metadata={"help": "one FFN for both stacks (asks for `shared` in both)"},
    )
    encoder_self_attn: str = field(
        default="individual", metadata={"help": _pattern_help("the encoder's self-attention", False)}
    )
    decoder_self_attn: str = field(
        default="individual", metadata={"help": _pattern_help("the decoder's self-attention", False)}
    )
    decoder_cross_attn: str = field(
        default="individual", metadata={"help": _pattern_help("the decoder's cross-attention", False)}
    )
    ffn_layer_norm: str = field(
        default="shared",
        metadata={
            "help": "whether a shared FFN shares its layer norm too (the paper counts it among the saved parameters, "
            f"but does not say), one of: {', '.join(FFN_LAYER_NORMS)}"
        },
    )


@dataclass
class DecoderOnlyFlags(SharingFlags):
    """What a decoder-only model has beside them."""

    target_positions: str = field(
        default="continue",
        metadata={
            "help": "number the target's positions on from the source's end, or from 1 again (the paper does not say), "
            f"one of: {', '.join(TARGET_POSITIONS)}"
        },
    )


NOT_IN_ONE_STACK: dict[str, tuple[Any, str]] = {
    "share_encoder_decoder_ffn": (False, "it has one stack, in which `--decoder-ffn shared` shares one FFN"),
    "decoder_cross_attn": ("individual", "it has no cross-attention"),
    "encoder_ffn": ("individual", "its one stack takes `--decoder-ffn`"),
    "encoder_self_attn": ("individual", "its one stack takes `--decoder-self-attn`"),
    "encoder_layers": (0, "its one stack takes `--decoder-layers`"),
    "encoder_layerdrop": (0, "source and target would skip different layers"),
    "encoder_layers_to_keep": (None, "train with the smaller number of layers instead"),
    "encoder_xformers_att_config": (None, "its attention is not fairseq's"),
    "decoder_layerdrop": (0, "source and target would skip different layers"),
    "decoder_layers_to_keep": (None, "train with the smaller number of layers instead"),
    "decoder_xformers_att_config": (None, "its attention is not fairseq's"),
}
"""What a decoder-only model has no use for, or cannot do right: the value that is no request, and the reason."""

READ_OF_EVERY_MODEL: dict[str, Any] = {
    "embed_dim": None,
    "ffn_embed_dim": None,
    "attention_heads": None,
    "normalize_before": False,
    "learned_pos": False,
    "embed_path": None,
}
"""What fairseq reads of an encoder, also where there is none: the value is the decoder's; here, fairseq's default."""

LARGEST_SIZES = {"layers": 1_000, "embed_dim": 2**16, "ffn_embed_dim": 2**22, "attention_heads": 2**16}
"""Sizes of a stack beyond all models that fit into a memory: a slip of the hand, or a damaged or hostile file."""

LARGEST_OF_BOTH = {
    "max_source_positions": 2**20,
    "max_target_positions": 2**20,
    "decoder_input_dim": 2**16,
    "decoder_output_dim": 2**16,
}
"""Those that are no stack's; fairseq computes a vector for every position when it builds a model."""

FLAG_DEFAULTS: dict[str, Any] = {flag.name: flag.default for flag in fields(SharingFlags)}
DECODER_ONLY_DEFAULTS: dict[str, Any] = {flag.name: flag.default for flag in fields(DecoderOnlyFlags)}
PATTERN_FLAGS = tuple(name for name, default in FLAG_DEFAULTS.items() if default == "individual")


class HasFlags(Protocol):
    """A namespace after an arch function: every flag of fairseq's transformer and of ours has a value."""

    encoder_layers: int
    decoder_layers: int
    decoder_only: bool

    def __getattr__(self, name: str) -> Any: ...


@dataclass(frozen=True)
class Plan:
    """Which block every layer uses, the result of valid flags.

    Attributes:
        ffn: for the encoder's layers and then the decoder's, so that both can name the same block.
        encoder_self_attn, decoder_self_attn, decoder_cross_attn: one number a layer.
        share_ffn_layer_norm: whether an FFN's layer norm is part of its block.
    """

    ffn: Pattern
    encoder_self_attn: Pattern
    decoder_self_attn: Pattern
    decoder_cross_attn: Pattern
    share_ffn_layer_norm: bool

    @property
    def shares(self) -> bool:
        """Whether any block serves more than one layer."""
        patterns = (self.ffn, self.encoder_self_attn, self.decoder_self_attn, self.decoder_cross_attn)
        used = [[number for number in pattern if number is not None] for pattern in patterns]
        return any(len(set(numbers)) < len(numbers) for numbers in used)

    @property
    def is_vanilla(self) -> bool:
        """Whether every layer has blocks of its own, and all of them."""
        return not self.shares and None not in self.ffn


def flag_name(name: str) -> str:
    """``encoder_ffn`` as users type it: ``--encoder-ffn``."""
    return "--" + name.replace("_", "-")


def make_plan(args: HasFlags) -> Plan:
    """Reads and checks the flags of a model.

    Args:
        args: fairseq's flags and ours, after the arch function has filled in what was not given.

    Raises:
        InputError: with every problem of these flags at once.
    """
    problems = _impossible_numbers(args)
    if args.decoder_only:
        problems += _not_in_one_stack(args)
    if problems:  # the patterns depend on the numbers of layers
        raise InputError(problems)
    patterns: dict[str, Pattern] = {}
    for name in PATTERN_FLAGS:
        layers = args.encoder_layers if name.startswith("encoder") else args.decoder_layers
        try:
            patterns[name] = make_pattern(
                getattr(args, name), layers, flag=flag_name(name), may_drop=name.endswith("ffn")
            )
        except InputError as error:
            problems += error.problems
            patterns[name] = make_pattern("individual", layers)
    if args.ffn_layer_norm not in FFN_LAYER_NORMS:
        problems.append(
            f"`--ffn-layer-norm` must be one of {', '.join(FFN_LAYER_NORMS)}, but is '{args.ffn_layer_norm}'"
        )

    decoder_ffn = patterns["decoder_ffn"]
    if args.share_encoder_decoder_ffn:
        problems += _one_ffn_for_both_stacks(args)
    else:
        decoder_ffn = [None if number is None else args.encoder_layers + number for number in decoder_ffn]
    plan = Plan(
        ffn=patterns["encoder_ffn"] + decoder_ffn,
        encoder_self_attn=patterns["encoder_self_attn"],
        decoder_self_attn=patterns["decoder_self_attn"],
        decoder_cross_attn=patterns["decoder_cross_attn"],
        share_ffn_layer_norm=args.ffn_layer_norm == "shared",
    )
    problems += _unsupported(args, plan)
    if problems:
        raise InputError(problems)
    return plan


def _impossible_numbers(args: HasFlags) -> list[str]:
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


def _not_in_one_stack(args: HasFlags) -> list[str]:
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


def _one_ffn_for_both_stacks(args: HasFlags) -> list[str]:
    """What stands in the way of one FFN that serves encoder and decoder."""
    problems = []
    for name in ("encoder_ffn", "decoder_ffn"):
        if getattr(args, name) != "shared":
            problems.append(
                f"`--share-encoder-decoder-ffn` (part of archs named shared_enc_dec) needs `{flag_name(name)} shared`, "
                f"but it is '{getattr(args, name)}'; use an arch without it, such as shared_enc_shared_dec"
            )
    for name in ("embed_dim", "ffn_embed_dim", "normalize_before"):
        encoder, decoder = getattr(args, f"encoder_{name}"), getattr(args, f"decoder_{name}")
        if encoder != decoder:
            problems.append(
                f"`--share-encoder-decoder-ffn` needs the same `{flag_name('encoder_' + name)}` and "
                f"`{flag_name('decoder_' + name)}`, but they are {encoder} and {decoder}"
            )
    return problems


def _unsupported(args: HasFlags, plan: Plan) -> list[str]:
    """Options of fairseq that it cannot do right with these blocks: refused, with the reason, rather than wrong."""

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
    for name in () if plan.is_vanilla else ("encoder_layers_to_keep", "decoder_layers_to_keep"):
        if given(name):
            problems.append(
                f"`{flag_name(name)}` cannot be combined with shared or dropped blocks: it removes layers after the "
                "pattern has been laid out over all of them; train with the smaller number of layers instead"
            )
    if not plan.shares and not args.decoder_only:
        return problems
    for name in () if not plan.shares else ("quant_noise_scalar", "quantization_config_path"):
        if given(name):
            problems.append(
                f"`{flag_name(name)}` cannot be combined with shared blocks: fairseq quantises a shared block in its "
                "first layer only; leave it out"
            )
    checkpointed = given("checkpoint_activations") or given("offload_activations")
    if checkpointed and given("ddp_backend") in ("pytorch_ddp", "c10d") and world_size() > 1:
        what = "shared blocks" if plan.shares else "a decoder-only model, which uses a block for source and target,"
        problems.append(
            f"`--checkpoint-activations` with {what} needs `--ddp-backend legacy_ddp`: under "
            f"'{given('ddp_backend')}' a shared weight is marked ready more than once"
        )
    return problems


def world_size() -> int:
    """Number of processes that train together; 1 where training is not distributed."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if distributed else 1
