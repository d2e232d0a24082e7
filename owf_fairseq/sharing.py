"""Which layer uses which block: patterns, and the configurations that the paper names.

A *pattern* gives, for every layer of a stack, the number of the block that the layer uses, or None where the block is
dropped. A new strategy is one function with ``@pattern`` here and one literal row in ``tests/test_sharing.py``.

Pure Python: nothing here knows torch or fairseq.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from owf_fairseq.errors import InputError

Pattern = list[int | None]
Block = TypeVar("Block")


@dataclass(frozen=True)
class Strategy:
    """A registered way to lay out blocks: its name as users write it, and the function that makes its pattern."""

    name: str
    layout: Callable[..., Pattern]
    counted: bool
    divides: bool

    @property
    def spelling(self) -> str:
        return f"{self.name}-M" if self.counted else self.name


STRATEGIES: dict[str, Strategy] = {}


def pattern(
    name: str, *, counted: bool = False, divides: bool = False
) -> Callable[[Callable[..., Pattern]], Callable[..., Pattern]]:
    """Registers a strategy.

    Args:
        name: as users write it; a counted one is written with the number of blocks behind it (``cycle-2``).
        counted: whether the function takes M, the number of blocks, after N, the number of layers; M is at most N.
        divides: whether M must divide N.
    """

    def register(layout: Callable[..., Pattern]) -> Callable[..., Pattern]:
        STRATEGIES[name] = Strategy(name, layout, counted, divides)
        return layout

    return register


@pattern("individual")
def individual(n: int) -> Pattern:
    """One block a layer: the vanilla Transformer."""
    return list(range(n))


@pattern("shared")
def shared(n: int) -> Pattern:
    """One block for all layers (paper, Section 2.2)."""
    return [0] * n


@pattern("none")
def none(n: int) -> Pattern:
    """No-op: block, residual connection and layer norm are gone in every layer (paper, Section 2.2, d_ff' = 0)."""
    return [None] * n


@pattern("sequence", counted=True)
def sequence(n: int, m: int) -> Pattern:
    """M blocks, each for N/M consecutive layers (Takase and Kiyono, 2023; paper, Appendix A).

    Where M does not divide N, their rule starts a new block after every floor(N/M) layers: there are more than M blocks
    then, and the last serves the layers that are left (7 layers with M = 3: 0 0 1 1 2 2 3).
    """
    return [layer // (n // m) for layer in range(n)]


@pattern("cycle", counted=True)
def cycle(n: int, m: int) -> Pattern:
    """M blocks in turn (Takase and Kiyono, 2023); where M does not divide N, the last turn is cut short."""
    return [layer % m for layer in range(n)]


@pattern("cycle-rev", counted=True, divides=True)
def cycle_rev(n: int, m: int) -> Pattern:
    """M blocks in turn, the last M layers in reverse (Takase and Kiyono, 2023, after their code; paper, Appendix A)."""
    return [layer % m if layer < n - m else n - 1 - layer for layer in range(n)]


@pattern("sandwich")
def sandwich(n: int) -> Pattern:
    """First and last layer individual, one block for all between them (Subformer: Reid et al., 2021)."""
    return [0 if layer == 0 else 2 if layer == n - 1 else 1 for layer in range(n)] if n > 2 else individual(n)


@pattern("last")
def last(n: int) -> Pattern:
    """One block for all layers but the last, which has its own."""
    return [int(0 < layer == n - 1) for layer in range(n)]


@pattern("middle", counted=True)
def middle(n: int, m: int) -> Pattern:
    """A block of its own for each of the M middle layers, none in the others (Lee et al., 2025).

    Where as many cannot be left out on both sides, one more is left out at the end.
    """
    first = (n - m) // 2
    return [layer - first if first <= layer < first + m else None for layer in range(n)]


EXPLICIT = "0,0,1,-,1,2"
"""An explicit pattern, for messages and help."""


def spellings() -> str:
    """What may be given as a pattern, for messages and help."""
    names = ", ".join(strategy.spelling for strategy in STRATEGIES.values())
    return f"{names}, or a number for each layer with - for none ({EXPLICIT})"


def make_pattern(text: str, layers: int, *, flag: str = "pattern") -> Pattern:
    """The pattern that ``text`` stands for.

    Args:
        text: a strategy's name, with ``-M`` behind it where it has a number of blocks: ``shared``, ``cycle-rev-2``; or
            an explicit pattern, ``0,0,1,-,1,2``.
        layers: N, the number of layers of the stack.
        flag: named in the error.

    Returns:
        For each of the N layers the number of its block, or None where the block is dropped.

    Raises:
        InputError: the text names no strategy; M is above N, or does not divide it where it must; or an explicit
            pattern is not one number a layer, in the order of first use.
    """
    if re.fullmatch(r"(-|[0-9]{1,9})( *, *(-|[0-9]{1,9}))*", text):
        return _explicit_pattern(text, layers, flag)

    def refuse(reason: str) -> InputError:
        return InputError(f"`{flag}` must be one of {spellings()}, but is '{text}'{reason}")

    match = re.fullmatch(r"(.*?)(?:-([1-9][0-9]{0,8}))?", text, re.DOTALL)
    assert match is not None  # the expression matches every string
    name, count = match.groups()
    strategy = STRATEGIES.get(name)
    if strategy is None or strategy.counted != (count is not None):
        raise refuse("")
    blocks = () if count is None else (int(count),)
    for number in blocks:
        if number > layers:
            raise refuse(f": {number} blocks for {layers} layers")
        if strategy.divides and layers % number:
            raise refuse(f": {number} blocks for {layers} layers (M must divide the number of layers)")
    numbers = strategy.layout(layers, *blocks)
    if len(numbers) != layers or not all(number is None or 0 <= number < layers for number in numbers):
        raise ValueError(f"strategy '{name}' must give each of {layers} layers a number below it or None: {numbers}")
    return _by_first_use(numbers)


def _explicit_pattern(text: str, layers: int, flag: str) -> Pattern:
    numbers = [None if part.strip() == "-" else int(part) for part in text.split(",")]
    if len(numbers) != layers:
        raise InputError(
            f"`{flag}` is '{text}', {_counted(len(numbers), 'entry', 'entries')} for {_counted(layers, 'layer')}: give "
            "one number for each layer, or - for none"
        )
    ordered = _by_first_use(numbers)
    if ordered != numbers:
        raise InputError(
            f"`{flag}` is '{text}', but blocks are numbered 0, 1, 2, ... without gaps, in the order of their first use"
            f": give {pattern_text(ordered)}"
        )
    return numbers


def _by_first_use(numbers: Pattern) -> Pattern:
    """The same layout with its blocks numbered 0, 1, 2, ... in the order of their first use."""
    order: dict[int, int] = {}
    return [None if number is None else order.setdefault(number, len(order)) for number in numbers]


def _counted(number: int, one: str, more: str | None = None) -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def pattern_text(numbers: Pattern) -> str:
    """A pattern as an explicit one is written: ``0,0,1,-,1,2``."""
    return ",".join("-" if number is None else str(number) for number in numbers)


def number_of_blocks(numbers: Sequence[int | None]) -> int:
    """How many blocks a pattern has."""
    return len({number for number in numbers if number is not None})


def blocks_in_order(numbers: Sequence[int | None], make: Callable[[int], Block]) -> Iterator[Block | None]:
    """Hands out the block of each layer in turn, and makes it when it is first used.

    Args:
        numbers: the pattern, a number a layer.
        make: called with the layer's index, once for every distinct number.

    Yields:
        The layer's block, None where the pattern says so.
    """
    made: dict[int, Block] = {}
    for layer, number in enumerate(numbers):
        if number is not None and number not in made:
            made[number] = make(layer)
        yield None if number is None else made[number]


@dataclass(frozen=True)
class Configuration:
    """One of the paper's configurations: what differs from the vanilla Transformer.

    Attributes:
        flags: our flags (without dashes) and their values.
        paper: the name that the paper uses.
        wide: the FFN is widened to d_ff' = (N_enc + N_dec) * d_ff (paper, Section 2.2).
    """

    paper: str
    flags: dict[str, str | bool] = field(default_factory=dict)
    wide: bool = False

    def shares_ffn(self, stack: str) -> bool:
        """Whether layers of a stack, ``encoder`` or ``decoder``, have an FFN in common."""
        numbers = [number for number in self._ffn(stack) if number is not None]
        return len(set(numbers)) < len(numbers)

    def has_own_ffns(self, stack: str) -> bool:
        """Whether every layer of a stack has an FFN of its own."""
        numbers = self._ffn(stack)
        return None not in numbers and len(set(numbers)) == len(numbers)

    def _ffn(self, stack: str) -> Pattern:
        return make_pattern(str(self.flags.get(f"{stack}_ffn", "individual")), 6)  # as many layers as the paper has


def _ffn(encoder: str = "individual", decoder: str = "individual") -> dict[str, str | bool]:
    return {"encoder_ffn": encoder, "decoder_ffn": decoder}


def _attention(encoder: str, decoder: str, cross: str) -> dict[str, str | bool]:
    return {"encoder_self_attn": encoder, "decoder_self_attn": decoder, "decoder_cross_attn": cross}


# The names are those of the archs, the config files and the tables.
CONFIGURATIONS: dict[str, Configuration] = {
    "individual": Configuration("Transformer"),
    "shared_enc": Configuration("SharedEnc", _ffn("shared")),
    "shared_dec": Configuration("SharedDec", _ffn(decoder="shared")),
    "shared_enc_shared_dec": Configuration("SharedEncSharedDec", _ffn("shared", "shared")),
    "shared_enc_dec": Configuration("SharedEncDec", {**_ffn("shared", "shared"), "share_encoder_decoder_ffn": True}),
    "no_enc": Configuration("NoEnc", _ffn("none")),
    "no_dec": Configuration("NoDec", _ffn(decoder="none")),
    "no_enc_no_dec": Configuration("NoEncNoDec", _ffn("none", "none")),
    "shared_enc_no_dec": Configuration("SharedEncNoDec", _ffn("shared", "none")),
    "no_enc_shared_dec": Configuration("NoEncSharedDec", _ffn("none", "shared")),
    "one_wide_ffn": Configuration("One Wide FFN", _ffn("shared", "none"), wide=True),
    "sequence_2": Configuration("Sequence M=2", _ffn("sequence-2")),
    "sequence_3": Configuration("Sequence M=3", _ffn("sequence-3")),
    "cycle_2": Configuration("Cycle M=2", _ffn("cycle-2")),
    "cycle_3": Configuration("Cycle M=3", _ffn("cycle-3")),
    "cycle_rev_2": Configuration("Cycle Rev M=2", _ffn("cycle-rev-2")),
    "cycle_rev_3": Configuration("Cycle Rev M=3", _ffn("cycle-rev-3")),
    # encoder self-attention, decoder self-attention, cross-attention: s(hared) or i(ndividual)
    "attention_sss": Configuration("enc self shared, dec self shared, cross shared", _attention(*["shared"] * 3)),
    "attention_ssi": Configuration(
        "enc self shared, dec self shared, cross individual", _attention("shared", "shared", "individual")
    ),
    "attention_sii": Configuration(
        "enc self shared, dec self individual, cross individual", _attention("shared", "individual", "individual")
    ),
    "attention_isi": Configuration(
        "enc self individual, dec self shared, cross individual", _attention("individual", "shared", "individual")
    ),
    "attention_iss": Configuration(
        "enc self individual, dec self shared, cross shared", _attention("individual", "shared", "shared")
    ),
    "attention_iis": Configuration(
        "enc self individual, dec self individual, cross shared", _attention("individual", "individual", "shared")
    ),
}

# "For decoder-only models, only SharedDec and NoDec configurations are defined" (paper, Section 3).
DECODER_ONLY_CONFIGURATIONS: dict[str, Configuration] = {
    "individual": Configuration("Transformer"),
    "shared_dec": Configuration("SharedDec", {"decoder_ffn": "shared"}),
    "no_dec": Configuration("NoDec", {"decoder_ffn": "none"}),
    "one_wide_ffn": Configuration("One Wide FFN", {"decoder_ffn": "shared"}, wide=True),
}


@dataclass(frozen=True)
class Size:
    """A named size: numbers only.

    Attributes:
        encoder_layers, decoder_layers: N_enc and N_dec. A decoder-only model has no encoder layers.
        embed_dim: d_model. ffn_dim: d_ff, of each FFN of the individual model. heads: attention heads.
    """

    encoder_layers: int
    decoder_layers: int
    embed_dim: int
    ffn_dim: int
    heads: int

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that have layers; the first has the wide FFN of a One Wide FFN model."""
        return ("encoder", "decoder") if self.encoder_layers else ("decoder",)

    @property
    def configurations(self) -> dict[str, Configuration]:
        """What there is for such a model."""
        return CONFIGURATIONS if self.encoder_layers else DECODER_ONLY_CONFIGURATIONS

    @property
    def wide_ffn_dim(self) -> int:
        """d_ff' of the One Wide FFN of this size."""
        return wide_ffn_dim(self.ffn_dim, self.encoder_layers, self.decoder_layers)


LARGEST_VOCABULARY = 2**24
"""Symbols of a dictionary, for which it is still a model."""

SIZES: dict[str, Size] = {
    "tiny": Size(6, 6, 64, 128, 2),
    "small": Size(2, 2, 128, 256, 4),
    "base": Size(6, 6, 512, 2048, 8),
    "big": Size(6, 6, 1024, 4096, 16),
    "deep_shallow": Size(12, 2, 1024, 4096, 16),
    "decoder_only": Size(0, 12, 1024, 4096, 16),
    "decoder_only_tiny": Size(0, 6, 64, 128, 2),
    "decoder_only_small": Size(0, 4, 128, 256, 4),
}


def arch_name(size: str, configuration: str) -> str:
    """``owf_<size>``, or ``owf_<size>_<configuration>``: the individual model has no second name."""
    return f"owf_{size}" if configuration == "individual" else f"owf_{size}_{configuration}"


def _fits(size: Size, configuration: Configuration) -> bool:
    """Whether the layers allow it, and it is not the individual model again (2 blocks for 2 layers)."""
    layers = {"encoder": size.encoder_layers, "decoder": size.decoder_layers}
    try:
        patterns = [
            make_pattern(value, layers[flag.split("_")[0]])
            for flag, value in configuration.flags.items()
            if isinstance(value, str)
        ]
    except InputError:
        return False
    return not patterns or any(None in pattern or len(set(pattern)) < len(pattern) for pattern in patterns)


# Every named architecture: its size and its configuration, where the layers allow it (3 blocks do not fit 2 layers).
ARCHS: dict[str, tuple[str, str]] = {
    arch_name(size, configuration): (size, configuration)
    for size, numbers in SIZES.items()
    for configuration in numbers.configurations
    if _fits(numbers, numbers.configurations[configuration])
}


def configuration_of(arch: str) -> Configuration:
    """The configuration of a named architecture."""
    size, configuration = ARCHS[arch]
    return SIZES[size].configurations[configuration]


def is_decoder_only(arch: str) -> bool:
    """Whether a named architecture has one stack."""
    return not SIZES[ARCHS[arch][0]].encoder_layers


def wide_ffn_dim(ffn_dim: int, encoder_layers: int, decoder_layers: int) -> int:
    """d_ff' = (N_enc + N_dec) * d_ff, the width of the One Wide FFN (paper, Section 2.2)."""
    return (encoder_layers + decoder_layers) * ffn_dim
