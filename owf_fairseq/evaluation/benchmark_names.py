"""The words of `owf benchmark`: which are models, what they are called, and which are flags of archs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from owf_fairseq.errors import InputError
from owf_fairseq.sharing import ARCHS


@dataclass(frozen=True)
class Named:
    """A model as it was typed.

    Attributes:
        name: before the ``=``, or by default.
        model: an arch, or one checkpoint or several with ``:`` between.
    """

    name: str
    model: str

    @property
    def is_arch(self) -> bool:
        """Whether it is no checkpoint."""
        return self.model in ARCHS

    @property
    def checkpoints(self) -> list[str]:
        """The files."""
        return [] if self.is_arch else self.model.split(os.pathsep)


def read_names(tokens: Sequence[str]) -> tuple[list[Named], list[str]]:
    """The models among the words of a command line, and the flags of the model with their values.

    Args:
        tokens: what the command's own parser did not know.

    Raises:
        InputError: no model is named, two have one name, a file is missing, or there is no such arch.
    """
    words, flags = _words_and_flags(tokens)
    named = _with_names(words)
    problems = [] if named else ["name one model or more: an arch (`owf params --list` prints them), or a checkpoint"]
    names = [one.name for one in named]
    problems += [
        f"two models have the name '{name}': give them names of your own, as in `first={name}`"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    problems += [problem for one in named for problem in _not_there(one)]
    if flags and not any(one.is_arch for one in named):
        problems.append(f"flags of a model are for archs, and no arch is named, but got `{' '.join(flags)}`")
    if problems:
        raise InputError(problems)
    return named, flags


def _with_names(words: Sequence[str]) -> list[Named]:
    """Models with the names that were given. A checkpoint without has that of its folder, if no other model has it."""
    split = []
    for word in words:
        name, equals, model = word.partition("=")
        split.append(("", word) if not equals or word in ARCHS or os.path.exists(word) else (name, model))
    names = [name or _folder(model) or model for name, model in split]
    return [
        Named(name or (short if names.count(short) == 1 else model), model)
        for (name, model), short in zip(split, names, strict=True)
    ]


def _folder(model: str) -> str:
    """The name of the folder of one checkpoint."""
    one_file = model not in ARCHS and os.pathsep not in model
    return os.path.basename(os.path.dirname(os.path.abspath(model))) if one_file else ""


def _words_and_flags(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits a command line by what fairseq's parser of the model's flags takes; without flags fairseq isn't needed."""
    if not any(token.startswith("-") for token in tokens):
        return list(tokens), []
    from owf_fairseq.parameters import FlagParser

    arch = next((token.split("=")[-1] for token in tokens if token.split("=")[-1] in ARCHS), next(iter(ARCHS)))
    _, others = FlagParser(arch).parse_known_args(list(tokens))
    unknown = [token for token in others if token.startswith("-")]
    values = {value for flag, value in zip(tokens, tokens[1:], strict=False) if flag in unknown}
    words = [token for token in others if token not in {*unknown, *values}]
    left, flags = list(words), []
    for token in tokens:
        if token in left:
            left.remove(token)
        else:
            flags.append(token)
    return words, flags


def _not_there(named: Named) -> list[str]:
    if not named.model:
        return [f"'{named.name}=' names no model"]
    if named.is_arch:
        return []
    missing = [path for path in named.checkpoints if not os.path.isfile(path)]
    if any(os.sep in path or path.endswith(".pt") for path in missing):
        return [f"there is no checkpoint {path}" for path in missing]
    if not missing:
        return []
    from owf_fairseq.parameters import unknown_arch

    return [f"{unknown_arch(path)}; and there is no checkpoint of this name" for path in missing]
