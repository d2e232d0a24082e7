"""Values of flags that several subcommands have, as argparse reads them."""

from __future__ import annotations

import argparse


def pair_of_lengths(text: str) -> tuple[int, int]:
    """``26/30`` as numbers."""
    source, _, target = text.partition("/")
    if not (source.isdecimal() and target.isdecimal()):
        raise argparse.ArgumentTypeError(f"'{text}' is not like 26/30 (name models before it)")
    return int(source), int(target)


def names_by_commas(text: str) -> tuple[str, ...]:
    """``fairseq,ctranslate2`` as names."""
    return tuple(dict.fromkeys(text.split(",")))


def numbers_by_commas(text: str) -> tuple[int, ...]:
    """``1,2,4`` as numbers."""
    numbers = text.split(",")
    if not all(number.lstrip("-").isdecimal() for number in numbers):
        raise argparse.ArgumentTypeError(f"'{text}' is not like 1,2,4")
    return tuple(dict.fromkeys(map(int, numbers)))
