"""Families of layouts. A family is one function with ``@family`` here, whose docstring is shown by ``--help``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from owf_fairseq.errors import InputError
from owf_fairseq.explore.layouts import Layout, Widths, layout_of_row, numbers_of
from owf_fairseq.paper.rows import rows as paper_rows
from owf_fairseq.patterns import STRATEGIES, number_of_blocks, pattern_text
from owf_fairseq.per_layer import parse_per_layer
from owf_fairseq.sharing import SIZES


@dataclass(frozen=True)
class Template:
    """A layout whose widths are still to be found.

    Attributes:
        layout: its widths are proportions in the stacks of ``solved``, and final in the others.
        solved: the stacks whose widths are solved for; none if the layout is as it is.
    """

    layout: Layout
    solved: tuple[str, ...] = ()


Family = Callable[[str], Iterator[Template]]

FAMILIES: dict[str, Family] = {}

DEFAULT = ("stacks", "middle")


def family(name: str) -> Callable[[Family], Family]:
    """Registers a family under the name that users give."""

    def register(function: Family) -> Family:
        FAMILIES[name] = function
        return function

    return register


def family_help(name: str) -> str:
    """What is in a family, in a sentence."""
    return " ".join((FAMILIES[name].__doc__ or "").split()).rstrip(".")


def templates(size: str, names: Iterable[str]) -> Iterator[Template]:
    """The layouts of families, keys of ``FAMILIES``, and those that the paper measured at this size."""
    for name in dict.fromkeys(["paper", *names]):
        yield from FAMILIES[name](size)


@family("paper")
def measured_in_paper(size: str) -> Iterator[Template]:
    """The models that the paper measured, with its widths (part of every exploration)."""
    seen = {layout.key: layout for layout in map(layout_of_row, paper_rows()) if layout.size == size}
    yield from map(Template, seen.values())


@family("stacks")
def named_patterns(size: str) -> Iterator[Template]:
    """Every named pattern in each stack: FFNs shared, dropped or individual in every way, with one width for both
    stacks, twice or four times as wide in one of them, or widened in one and left as they are in the other.
    """
    ffns = [[Ffn(pattern) for pattern in _named_patterns(layers)] for layers in _layers(size)]
    yield from _combined(size, ffns)
    if SIZES[size].encoder_layers:
        one_ffn = Layout(size, "shared", "shared", (1,), (1,), share_encoder_decoder_ffn=True)
        yield Template(one_ffn, ("encoder", "decoder"))


@family("middle")
def consecutive_layers(size: str) -> Iterator[Template]:
    """FFNs in some consecutive layers only, anywhere in each stack, individual or one for all of them; widths as in
    stacks.
    """
    yield from _combined(size, [[Ffn(pattern) for pattern in _runs(layers)] for layers in _layers(size)])


@family("taper")
def tapered(size: str) -> Iterator[Template]:
    """Individual FFNs that get narrower, or wider, with depth, down to an eighth; in one stack or both."""

    def options(layers: int) -> list[Ffn]:
        flat = [Ffn("individual"), Ffn("none")] if layers else [Ffn("individual")]
        if layers < 2:
            return flat
        falling = []
        for factor in (2, 4, 8):
            steps = [factor - (factor - 1) * layer / (layers - 1) for layer in range(layers)]
            falling.append(tuple(step * layers / sum(steps) for step in steps))
        return flat + [Ffn("individual", widths) for one in falling for widths in (one, one[::-1])]

    yield from _combined(size, [options(layers) for layers in _layers(size)])


@family("attention")
def other_attention(size: str) -> Iterator[Template]:
    """Attention shared, or dropped in the last layers of a stack, beside FFNs that are individual, shared or dropped in
    the whole stack.
    """
    encoder, decoder = _layers(size)

    def options(layers: int, may_go: bool) -> list[str]:
        dropped = [pattern_text([*range(layers - m), *[None] * m]) for m in range(1, layers)]
        return ["individual", "shared", *dropped, *(["none"] if may_go else [])] if layers else ["individual"]

    crosses = encoder > 0
    kinds = (
        options(encoder, may_go=True),
        options(decoder, may_go=crosses),
        options(decoder, may_go=False) if crosses else ["individual"],
    )
    ffns = [
        [Ffn(one) for one in (("individual", "shared", "none") if n else ("individual",))] for n in (encoder, decoder)
    ]
    for template in _combined(size, ffns, splits=False):
        for encoder_self, decoder_self, cross in product(*kinds):
            layout = replace(
                template.layout,
                encoder_self_attn=encoder_self,
                decoder_self_attn=decoder_self,
                decoder_cross_attn=cross,
            )
            yield replace(template, layout=layout)


@family("per-layer")
def shared_with_terms(size: str) -> Iterator[Template]:
    """Shared FFNs (one, two, or all but the first and last) with terms of each layer's own: norm, bias, scale, lora."""
    ffns = [
        [Ffn(pattern) for pattern in _named_patterns(layers) if pattern in _SHARING or not layers]
        for layers in _layers(size)
    ]
    for template in _combined(size, ffns, splits=False):
        shares = any(
            number_of_blocks(numbers) < len(numbers) - numbers.count(None)
            for numbers in (template.layout.ffn(stack) for stack in ("encoder", "decoder"))
        )
        for terms in ("norm", "bias", "scale", "norm,bias,scale", "lora-4", "lora-16", "lora-64") if shares else ():
            yield replace(template, layout=replace(template.layout, per_layer=parse_per_layer(terms)))


_SHARING = ("individual", "none", "shared", "sequence-2", "cycle-2", "sandwich")


@dataclass(frozen=True)
class Ffn:
    """The FFNs of a stack: a pattern, and the widths of its blocks relative to each other (as a rule, all alike)."""

    pattern: str
    proportions: Widths = ()

    def widths(self, layers: int, factor: float = 1) -> Widths:
        """A width for each block."""
        blocks = number_of_blocks(numbers_of(self.pattern, layers)) if layers else 0
        return tuple(factor * one for one in self.proportions or (1,) * blocks)


_RATIOS = ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4))
"""Of the encoder's width and the decoder's."""


def _layers(size: str) -> tuple[int, int]:
    return SIZES[size].encoder_layers, SIZES[size].decoder_layers


def _combined(size: str, ffns: Sequence[Iterable[Ffn]], splits: bool = True) -> Iterator[Template]:
    """Every pair of an encoder and a decoder, with every way to split the width between them, or one width for both."""
    ffn_dim, layers = SIZES[size].ffn_dim, _layers(size)
    for first, second in product(*ffns):
        layout = Layout(size, first.pattern, second.pattern)
        solved = tuple(
            stack
            for stack, ffn, n in zip(("encoder", "decoder"), (first, second), layers, strict=True)
            if ffn.widths(n)
        )
        for ratio in _RATIOS if splits and len(solved) == 2 else _RATIOS[:1]:
            widths = (first.widths(layers[0], ratio[0]), second.widths(layers[1], ratio[1]))
            yield Template(replace(layout, encoder_widths=widths[0], decoder_widths=widths[1]), solved)
        if splits and len(solved) == 2:
            kept = first.widths(layers[0], ffn_dim), second.widths(layers[1], ffn_dim)
            one, other = first.widths(layers[0]), second.widths(layers[1])
            if not first.proportions:
                yield Template(replace(layout, encoder_widths=kept[0], decoder_widths=other), ("decoder",))
            if not second.proportions:
                yield Template(replace(layout, encoder_widths=one, decoder_widths=kept[1]), ("encoder",))


def _named_patterns(layers: int) -> list[str]:
    """Every strategy with every number of blocks, each pattern once, under its first name."""
    if not layers:
        return ["individual"]
    found: dict[tuple[int | None, ...], str] = {}
    for strategy in STRATEGIES.values():
        for text in [f"{strategy.name}-{m}" for m in range(1, layers + 1)] if strategy.counted else [strategy.name]:
            try:
                found.setdefault(numbers_of(text, layers), text)
            except InputError:
                continue  # M does not divide the layers
    return list(found.values())


def _runs(layers: int) -> list[str]:
    """Patterns with FFNs in consecutive layers only, individual or shared, the most central runs first; and none."""
    if not layers:
        return ["individual"]
    names = {numbers_of(text, layers): text for text in _named_patterns(layers)}
    runs = [(start, length) for length in range(layers, 0, -1) for start in range(layers - length + 1)]
    runs.sort(key=lambda run: (-run[1], abs(2 * run[0] + run[1] - layers)))
    found: dict[tuple[int | None, ...], str] = {}
    for (start, length), is_shared in product(runs, (False, True)):
        blocks = [0] * length if is_shared else list(range(length))
        numbers = (*[None] * start, *blocks, *[None] * (layers - start - length))
        found.setdefault(numbers, names.get(numbers, pattern_text(list(numbers))))
    return ["none", *found.values()]
