"""The flags that a file records, checked before anything is made of them.

On the command line argparse sees to the types. A file may hold anything, and fairseq would stumble over it, at best.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import torch

from owf_fairseq.errors import InputError
from owf_fairseq.flags import flag_name
from owf_fairseq.parameters import FlagParser

_LARGEST = 2**31 - 1
_LONGEST = 10_000  # characters of a text


def check_recorded_flags(arch: str, flags: Mapping[str, Any], file: str) -> None:
    """Compares the values of a model's flags with the types that the model declares.

    Args:
        arch: a registered one.
        flags: by name; those that the model does not know, or that are None, say nothing of it.
        file: named in the error.

    Raises:
        InputError: with every flag that has a value of another type.
    """
    problems = [
        f"{file}: its `{flag_name(name)}` is a {type(value).__name__}, and no flag's value"
        for name, value in flags.items()
        if isinstance(value, (torch.Tensor, bytes, argparse.Namespace))
    ]
    for action in FlagParser(arch)._actions:
        value = flags.get(action.dest)
        wanted = None if value is None else _wanted(action, value)
        if wanted is not None:
            shown = repr(value) if isinstance(value, (str, int, float)) else type(value).__name__
            shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
            problems.append(f"{file}: its `{flag_name(action.dest)}` must be {wanted}, but is {shown}")
    if problems:
        raise InputError(problems)


def _wanted(action: argparse.Action, value: object) -> str | None:
    """What a flag takes, if this is no such value."""
    number = type(value) in (int, float) and abs(value) <= _LARGEST  # type: ignore[arg-type]
    whole = number and type(value) is int
    if action.nargs == 0:
        return None if type(value) is bool else "true or false"
    if action.choices is not None:
        return None if isinstance(value, str) and value in action.choices else f"one of {', '.join(action.choices)}"
    if action.type is int:
        return None if whole else "a whole number"
    if action.type is float:
        return None if number else "a number"
    if isinstance(value, str):
        return None if len(value) <= _LONGEST else "a shorter text"
    if action.type is str:
        return "a text"
    # fairseq's type of lists, which it takes as text or as they are, and of what it copies from another flag
    numbers = value if isinstance(value, (list, tuple)) else [value]
    return None if all(type(one) is int and abs(one) <= _LARGEST for one in numbers) else "a number or a list of them"
