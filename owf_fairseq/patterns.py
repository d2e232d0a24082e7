"""Which layer uses which block.

A *pattern* gives, for every layer of a stack, the number of the block that the layer uses, or None where the block is
dropped. A new strategy is one function with ``@pattern`` here and one literal row in ``tests/test_patterns.py``.

Pure Python: nothing here knows torch or fairseq.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
def all_but_last(n: int) -> Pattern:
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


def as_words(option: str, *values: str) -> list[str]:
    """A flag as argparse takes it: with = before a value that begins with -, which would be taken for a flag."""
    if len(values) == 1 and EXPLICIT_START.match(values[0]):
        return [f"{option}={values[0]}"]
    return [option, *values]


EXPLICIT_START = re.compile(r" *-(,| |$)")
"""An explicit pattern whose first layer has no block."""


def joined(tokens: Sequence[str]) -> list[str]:
    """The words of a command line, with = between a flag and a pattern that begins with -."""
    words: list[str] = []
    for token in tokens:
        if words and EXPLICIT_START.match(token) and words[-1].startswith("--") and "=" not in words[-1]:
            words[-1:] = as_words(words[-1], token)
        else:
            words.append(token)
    return words


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
