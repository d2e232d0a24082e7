"""The words of `owf benchmark`: which are models, what they are called, what decodes them, which are flags of archs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from owf_fairseq.decoding.backends import CTRANSLATE2, FAIRSEQ, Choice, backend_of
from owf_fairseq.errors import InputError, collect
from owf_fairseq.model_names import checkpoints_of, name_models, refuse_equal_names
from owf_fairseq.sharing import ARCHS


@dataclass(frozen=True)
class Named:
    """A model as it was typed.

    Attributes:
        name: before the ``=``, or by default.
        model: an arch, one checkpoint or several with ``:`` between, or a folder that `owf export` made.
        choice: what decodes it.
        typed: the name before a backend was added to it, if one was.
    """

    name: str
    model: str
    choice: Choice = Choice(FAIRSEQ)
    typed: str | None = None

    @property
    def short(self) -> str:
        """The name that it has in flags, whatever decodes it."""
        return self.typed or self.name

    @property
    def is_arch(self) -> bool:
        """Whether it is no checkpoint."""
        return self.model in ARCHS

    @property
    def is_exported(self) -> bool:
        """Whether it is a folder that `owf export` made."""
        return not self.is_arch and backend_of(self.model) == CTRANSLATE2

    @property
    def checkpoints(self) -> list[str]:
        """The files."""
        return [] if self.is_arch or self.is_exported else checkpoints_of(self.model)


def read_names(tokens: Sequence[str]) -> tuple[list[Named], list[str]]:
    """The models among the words of a command line, and the flags of the model with their values.

    Args:
        tokens: what the command's own parser did not know.

    Raises:
        InputError: no model is named, two have one name, a file is missing, or there is no such arch.
    """
    words, flags = _words_and_flags(tokens)
    problems = [] if words else ["name one model or more: an arch (`owf params --list` prints them), or a checkpoint"]
    named = [Named(name, model) for name, model in collect(problems, lambda: name_models(words)) or ()]
    problems += [problem for one in named for problem in _not_there(one)]
    if flags and not any(one.is_arch for one in named):
        problems.append(f"flags of a model are for archs, and no arch is named, but got `{' '.join(flags)}`")
    if problems:
        raise InputError(problems)
    return named, flags


def with_backends(named: Sequence[Named], backends: Sequence[str]) -> list[Named]:
    """Every model once for each backend. An exported one is decoded as it was exported, by the program it is for.

    Args:
        named: the models.
        backends: as typed; empty for fairseq.

    Returns:
        Where there are several backends, fairseq's models have their names, and the others' names end in ``@backend``.

    Raises:
        InputError: there is no such backend, or no model for one.
    """
    problems: list[str] = []
    choices = [found for text in backends if (found := collect(problems, partial(Choice.read, text))) is not None]
    exported = [one for one in named if one.is_exported]
    if backends and not problems and all(choice.backend == FAIRSEQ for choice in choices):
        problems += [
            f"{one.model} is a folder, which `--backend fairseq` can't read: add ctranslate2, or name its checkpoint"
            for one in exported
        ]
    if problems:
        raise InputError(problems)
    choices = list(dict.fromkeys(choices)) or [Choice(FAIRSEQ)]
    # an exported model has its place in the row of the backend that reads it
    of_exported = next((choice for choice in choices if choice.backend == CTRANSLATE2), choices[0])
    spread = []
    for choice in choices:
        suffix = "" if len(choices) < 2 or choice.backend == FAIRSEQ else f"@{choice}"
        for one in named:
            if not one.is_exported:
                spread.append(replace(one, name=one.name + suffix, choice=choice, typed=one.name))
            elif choice is of_exported:
                spread.append(replace(one, choice=Choice(CTRANSLATE2)))
    refuse_equal_names([one.name for one in spread])
    return spread


def _words_and_flags(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """See ``words_and_flags``; without flags fairseq isn't needed."""
    if not any(token.startswith("-") for token in tokens):
        return list(tokens), []
    from owf_fairseq.parameters import words_and_flags

    arch = next((token.split("=")[-1] for token in tokens if token.split("=")[-1] in ARCHS), next(iter(ARCHS)))
    words, flags, _ = words_and_flags(arch, tokens)
    return words, flags


def _not_there(named: Named) -> list[str]:
    if named.is_arch or named.is_exported:
        return []
    missing = [path for path in named.checkpoints if not os.path.isfile(path)]
    if missing and named.model.endswith("="):
        return [f"'{named.model}' names no model"]
    if any(os.sep in path or path.endswith(".pt") for path in missing):
        return [f"there is no checkpoint {path}" for path in missing]
    if not missing:
        return []
    from owf_fairseq.parameters import unknown_arch

    return [f"{unknown_arch(path)}; and there is no checkpoint of this name" for path in missing]
