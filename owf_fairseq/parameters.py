"""Exact parameter counts of the named architectures, with the model built but none of its weights allocated.

A tensor that several layers share is counted once. The model is built by the code that fairseq-train runs, on torch's
meta device: only shapes are made.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

from owf_fairseq import models as _models  # noqa: F401  registers the archs
from owf_fairseq.errors import InputError
from owf_fairseq.flags import FLAG_DEFAULTS, flag_name
from owf_fairseq.patterns import joined
from owf_fairseq.sharing import ARCHS, LARGEST_VOCABULARY, arch_name, is_decoder_only

BLOCKS = (
    "embeddings",
    "encoder self-attention",
    "encoder FFN",
    "decoder self-attention",
    "decoder cross-attention",
    "decoder FFN",
    "other",
)

Flags = Sequence[str] | Mapping[str, Any]


@dataclass(frozen=True)
class ParameterCount:
    """How many parameters a model has, and where.

    Attributes:
        arch: its name.
        flags: what the user gave, by name and as fairseq reads it.
        total: all parameters, a shared tensor once.
        by_block: the parts of the total, in the order of ``BLOCKS``. A block's layer norm counts with its block; an FFN
            that both stacks share counts as ``encoder FFN``, the first to use it; "other" are the stacks' last layer
            norms (pre-norm) and projections between unequal widths.
        individual_total: of the individual model of the same size with the same flags other than patterns and FFN
            widths, which are the size's own.
        matching_ffn_dim: d_ff' that gives the total of the individual model, to the nearest integer, the same in every
            FFN that is left; None where none is left.
    """

    arch: str
    flags: dict[str, Any]
    total: int
    by_block: dict[str, int]
    individual_total: int
    matching_ffn_dim: int | None

    @property
    def percent(self) -> float:
        """The total in % of the individual model's."""
        return 100 * self.total / self.individual_total


class SizedDictionary(Dictionary):
    """A fairseq dictionary that says it has this many symbols, without making them up."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def __len__(self) -> int:
        return self.size


class FlagParser(argparse.ArgumentParser):
    """fairseq's own parser of a model's flags, which knows only what was given: defaults are left to the arch.

    Args:
        arch: a registered architecture.
    """

    def __init__(self, arch: str) -> None:
        super().__init__(argument_default=argparse.SUPPRESS, allow_abbrev=False, add_help=False)
        ARCH_MODEL_REGISTRY[arch].add_args(self)

    def error(self, message: str) -> NoReturn:
        # fairseq's types of lists are lambdas
        raise InputError(
            re.sub(r"^argument (\S+):", r"`\1`:", message).replace("invalid <lambda> value", "invalid value")
        )

    def dests(self) -> set[str]:
        """The names under which flags are stored."""
        return {action.dest for action in self._actions}

    def option_strings(self) -> list[str]:
        """The flags as they are typed."""
        return [option for action in self._actions for option in action.option_strings]


def unknown_arch(arch: str) -> str:
    """The sentence that refuses an arch, with the names that are near."""
    near = difflib.get_close_matches(arch, ARCHS, n=4)
    suggestion = f"did you mean {', '.join(near)}? " if near else ""
    return f"there is no arch '{arch}': {suggestion}`owf params --list` prints them all"


def unknown_flag(flag: str, known: Iterable[str]) -> str:
    """The sentence that refuses a flag, with the names that are near."""
    near = difflib.get_close_matches(flag.split("=")[0], list(known), n=3)
    suggestion = f"; did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""
    return f"`{flag}` is not a flag of this model (flags of task and training do not change the count){suggestion}"


def split_archs_and_flags(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of archs among the words of a command line, each once, and what is left for ``given_flags``."""
    return list(dict.fromkeys(token for token in tokens if token in ARCHS)), [t for t in tokens if t not in ARCHS]


def words_and_flags(arch: str, tokens: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Splits a command line by what fairseq's parser of a model's flags takes.

    Args:
        arch: whose flags they are.
        tokens: words and flags, in any order.

    Returns:
        The words that belong to no flag; the flags with their values, unknown ones too; and the unknown ones alone.

    Raises:
        InputError: a value of the wrong type.
    """
    tokens = joined(tokens)
    _, others = FlagParser(arch).parse_known_args(tokens)
    unknown = [token for token in others if token.startswith("-")]
    values = {value for flag, value in zip(tokens, tokens[1:], strict=False) if flag in unknown}
    words = [token for token in others if token not in {*unknown, *values}]
    left, flags = list(words), []
    for token in tokens:
        if token in left:
            left.remove(token)
        else:
            flags.append(token)
    return words, flags, unknown


def given_flags(arch: str, flags: Flags) -> dict[str, Any]:
    """What the user gave, by name and as fairseq reads it.

    Args:
        arch: a registered architecture.
        flags: as on fairseq-train's command line, or by name as in a config file, with ``-`` or ``_``.

    Raises:
        InputError: an unknown flag, a value of the wrong type, or a word that belongs to no flag and so should be an
            arch.
    """
    parser = FlagParser(arch)
    words: list[str] = []
    if isinstance(flags, Mapping):
        by_name = {name.lstrip("-").replace("-", "_"): value for name, value in flags.items()}
        wrong = [flag_name(name) for name in by_name if name not in parser.dests()]
    else:
        by_name = vars(parser.parse_known_args(joined(flags))[0])
        words, _, wrong = words_and_flags(arch, flags)
    if wrong or words:
        raise InputError([*(unknown_flag(flag, parser.option_strings()) for flag in wrong), *map(unknown_arch, words)])
    return by_name


def count_parameters(arch: str, vocab_size: int, flags: Flags = (), shared_embeddings: bool = True) -> ParameterCount:
    """Counts the parameters of an architecture.

    Args:
        arch: its name.
        vocab_size: number of symbols of fairseq's dictionary, special symbols included; of both languages.
        flags: fairseq's flags of the model and ours, which win over the arch's defaults; see ``given_flags``.
        shared_embeddings: one matrix for the source, the target and the output (``--share-all-embeddings``). If not,
            fairseq's default, three matrices, unless the flags say otherwise.

    Raises:
        InputError: there is no such arch or flag, or these flags describe no model.
    """
    if arch not in ARCHS:
        raise InputError(unknown_arch(arch))
    if is_decoder_only(arch) and not shared_embeddings:
        raise InputError(f"`--separate-embeddings`: {arch} has one matrix for source, target and output")
    check_vocabulary(vocab_size)
    given = given_flags(arch, flags)
    embeddings = {"share_all_embeddings": True, "share_decoder_input_output_embed": True} if shared_embeddings else {}
    varied = {*FLAG_DEFAULTS, "encoder_ffn_embed_dim", "decoder_ffn_embed_dim"}
    individual = _build(
        arch_name(ARCHS[arch][0], "individual"),
        vocab_size,
        {name: value for name, value in given.items() if name not in varied} | embeddings,
    )
    model = _build(arch, vocab_size, given | embeddings)

    by_block = dict.fromkeys(BLOCKS, 0)
    for name, parameter in model.named_parameters():  # yields a shared tensor once, under its first name
        by_block[_block(name)] += parameter.numel()
    total, individual_total = sum(by_block.values()), sum(p.numel() for p in individual.parameters())
    matching = _matching_ffn_dim(model, total, individual_total)
    return ParameterCount(arch, given, total, by_block, individual_total, matching)


def check_vocabulary(size: int) -> None:
    """Refuses a vocabulary that no model has.

    Raises:
        InputError: it has no room for fairseq's special symbols, or more than the memory could hold.
    """
    if size < 4:
        raise InputError(f"`--vocab-size` must be at least 4, fairseq's special symbols, but is {size}")
    if size > LARGEST_VOCABULARY:
        raise InputError(f"`--vocab-size` must be at most {LARGEST_VOCABULARY:,}, but is {size:,}")


def _build(arch: str, vocab_size: int, given: dict[str, Any]) -> torch.nn.Module:
    """The model, on the meta device."""
    # vectors to start from change no count, and need not be there
    args = argparse.Namespace(**{**given, "encoder_embed_path": None, "decoder_embed_path": None})
    dictionary = SizedDictionary(vocab_size)
    try:
        ARCH_CONFIG_REGISTRY[arch](args)
        with torch.device("meta"):
            return ARCH_MODEL_REGISTRY[arch].build_model(
                args, SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
            )
    except (InputError, ImportError):
        raise
    except Exception as error:
        # fairseq refuses some flags with these two, and trips over others
        reason = " ".join(str(error).split())
        if not (isinstance(error, (ValueError, AssertionError)) and reason):
            reason = f"fairseq fails with {type(error).__name__}" + (f": {reason}" if reason else "")
        hint = " (`--separate-embeddings` counts without sharing)" if "share-all-embeddings" in reason else ""
        raise InputError(f"{arch} cannot be built with these flags: {reason}{hint}") from error


def _block(name: str) -> str:
    """Which of ``BLOCKS`` a parameter belongs to, by its name in fairseq's state dict."""
    stack, *parts = name.split(".")
    if {"fc1", "fc2", "final_layer_norm"} & set(parts):
        return f"{stack} FFN"
    if {"self_attn", "self_attn_layer_norm"} & set(parts):
        return f"{stack} self-attention"
    if {"encoder_attn", "encoder_attn_layer_norm"} & set(parts):
        return "decoder cross-attention"
    if parts[0].startswith(("embed_", "layernorm_embedding", "output_projection", "adaptive_softmax")):
        return "embeddings"
    return "other"


def _matching_ffn_dim(model: torch.nn.Module, total: int, individual_total: int) -> int | None:
    """The width at which the model, with this many FFNs, has as many parameters as the individual one.

    What of an FFN grows, grows in proportion to its width d_ff: the total is a straight line,
    total(d_ff') = fixed + slope * d_ff'.
    """
    growing = slope = 0
    seen: set[int] = set()
    for layer in model.modules():
        for name in _WIDE_PARAMETERS if hasattr(layer, "fc1") else ():
            linear, _, kind = name.partition(".")
            parameter = getattr(getattr(layer, linear), kind, None)
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                growing += parameter.numel()
                slope += parameter.numel() // layer.fc1.out_features  # type: ignore[union-attr]
    room = individual_total - (total - growing)
    return round(room / slope) if slope else None


_WIDE_PARAMETERS = ("fc1.weight", "fc1.bias", "fc1.lora_b", "fc2.weight", "fc2.lora_a")
"""Those of a layer's FFN that grow in proportion to its width."""
