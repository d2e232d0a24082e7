"""Our flags on top of fairseq's TransformerConfig, and what is usual or allowed for them."""

# no `from __future__ import annotations` here: fairseq makes its parser from the types of the dataclass

from dataclasses import dataclass, field, fields
from typing import Any

from fairseq.dataclass import FairseqDataclass

from owf_fairseq.patterns import spellings
from owf_fairseq.per_layer import TERMS

FFN_LAYER_NORMS = ("shared", "per-layer")
TARGET_POSITIONS = ("continue", "restart")


def _pattern_help(block: str, ignored: str = "") -> str:
    return f"which layers share {block}: one of {spellings()}; = comes before one that begins with -{ignored}"


def _widths_help(stack: str) -> str:
    return (
        f"d_ff of each of the {stack}'s FFNs, in the order of their first use, with commas: 512,2048,8192 (default: "
        f"`--{stack}-ffn-embed-dim` for all)"
    )


@dataclass
class SharingFlags(FairseqDataclass):
    """What this plugin adds to fairseq's transformer flags. The FFN's width is fairseq's own ``--*-ffn-embed-dim``."""

    encoder_ffn: str = field(
        default="individual",
        metadata={"help": _pattern_help("the encoder's FFN", "; the width of a dropped FFN has no effect")},
    )
    decoder_ffn: str = field(default="individual", metadata={"help": _pattern_help("the decoder's FFN")})
    encoder_ffn_widths: str = field(default="", metadata={"help": _widths_help("encoder")})
    decoder_ffn_widths: str = field(default="", metadata={"help": _widths_help("decoder")})
    share_encoder_decoder_ffn: bool = field(
        default=False,
        metadata={"help": "one FFN for both stacks (asks for `shared` in both)"},
    )
    encoder_self_attn: str = field(
        default="individual", metadata={"help": _pattern_help("the encoder's self-attention")}
    )
    decoder_self_attn: str = field(
        default="individual", metadata={"help": _pattern_help("the decoder's self-attention")}
    )
    decoder_cross_attn: str = field(
        default="individual", metadata={"help": _pattern_help("the decoder's cross-attention")}
    )
    ffn_per_layer: str = field(
        default="",
        metadata={
            "help": "what each layer has of its own where layers share an FFN, one or more with commas: "
            f"{', '.join(TERMS)} (its layer norm; the bias of fc1; a factor for each input of fc1; matrices of rank R "
            "that are added to fc1 and fc2)"
        },
    )
    ffn_layer_norm: str = field(
        default="shared",
        metadata={
            "help": "whether a shared FFN shares its layer norm too (the paper counts it among the saved parameters, "
            f"but does not say), one of: {', '.join(FFN_LAYER_NORMS)}; `--ffn-per-layer norm` is the same as per-layer"
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
    "encoder_ffn_widths": ("", "its one stack takes `--decoder-ffn-widths`"),
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
LIST_FLAGS = (*PATTERN_FLAGS, "encoder_ffn_widths", "decoder_ffn_widths", "ffn_per_layer")
"""Our flags with commas; a config file may have a list."""


def as_text(value: Any) -> str:
    """A flag's list as it is typed, from a list (None is a layer without a block), a number or the text itself."""
    if isinstance(value, (list, tuple)):
        return ",".join("-" if one is None else str(one) for one in value)
    return str(value)


def flag_name(name: str) -> str:
    """``encoder_ffn`` as users type it: ``--encoder-ffn``."""
    return "--" + name.replace("_", "-")
