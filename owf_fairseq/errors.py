"""The one exception that stands for bad usage or bad input."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

Warn = Callable[[str], None]
"""Is told what a user should know, and what stops nothing."""


class InputError(ValueError):
    """Something that the user gave cannot be used; the command line prints it and exits with status 2.

    Args:
        problems: one sentence, or several: all problems of one command are reported together. Each says what was given,
            what is allowed and what to do, and names the flag, or the file and line.
    """

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


_NOT_SHOWN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
"""Unicode's categories of what moves the cursor, hides or turns text, or is no character."""


def printable(text: str) -> str:
    """Text that a file may hold, for the screen: a control character is written as Python writes it, ``\\x1b``.

    Printed as it is, it could overwrite what stands there already, or make a terminal do other things.
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _NOT_SHOWN
        else character
        for character in text
    )


def collect(problems: list[str], action: Callable[[], T]) -> T | None:
    """Does one of a command's preparations, whose problems are to be reported with those of the others.

    Args:
        problems: get those of the action.
        action: raises an ``InputError`` if what it was given cannot be used.

    Returns:
        What the action returns; None if it failed.
    """
    try:
        return action()
    except InputError as error:
        problems += error.problems
        return None


def too_small(flag: str, number: int | None, least: int = 1) -> list[str]:
    """The problem of a flag's number that is below what is allowed; none where the flag was not given."""
    return [] if number is None or number >= least else [f"`{flag}` must be at least {least}, but is {number}"]
