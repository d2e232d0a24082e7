"""What models are called on the command line: ``[NAME=]MODEL``. Needs neither torch nor fairseq."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from owf_fairseq.errors import InputError
from owf_fairseq.sharing import ARCHS


def split_name(word: str) -> tuple[str, str]:
    """The name, empty if none is given, and the model, or any other path."""
    name, _, model = word.partition("=")
    return ("", word) if not model or word in ARCHS or os.path.exists(word) else (name, model)


def name_models(words: Sequence[str]) -> list[tuple[str, str]]:
    """Models with the names that were given, as ``[NAME=]MODEL``.

    Args:
        words: as typed; a model is an arch, a folder, a checkpoint or several with ``:`` between.

    Returns:
        Name and model. A checkpoint without a name has that of its folder, if no other model has it; else its path.

    Raises:
        InputError: two models have one name.
    """
    split = [split_name(word) for word in words]
    names = [name or _folder(model) or model for name, model in split]
    named = [
        (name or (short if names.count(short) == 1 else model), model)
        for (name, model), short in zip(split, names, strict=True)
    ]
    refuse_equal_names([name for name, _ in named])
    return named


def refuse_equal_names(names: Sequence[str]) -> None:
    """Checks that no two models have one name.

    Raises:
        InputError: with every name that several have.
    """
    equal = sorted({name for name in names if names.count(name) > 1})
    if equal:
        raise InputError(
            f"two models have the name '{name}': give them different names, such as `first={name}`" for name in equal
        )


def _folder(model: str) -> str:
    """The name of the folder of one checkpoint."""
    if model in ARCHS or os.pathsep in model:
        return ""
    path = os.path.abspath(model)
    return os.path.basename(path if os.path.isdir(path) else os.path.dirname(path))


def checkpoints_of(model: str) -> list[str]:
    """The files of a checkpoint or of an ensemble, whose names have ``:`` between, as in fairseq's ``--path``.

    The path of a file that is there may have a ``:`` of its own: the longest name that is one is taken.
    """
    parts, files = model.split(os.pathsep), []
    while parts:
        ends = range(len(parts), 0, -1)
        end = next((end for end in ends if os.path.isfile(os.pathsep.join(parts[:end]))), 1)
        files.append(os.pathsep.join(parts[:end]))
        parts = parts[end:]
    return files


def without_seed(name: str) -> str:
    """The configuration's name of a run that is called ``NAME_seed_N``, as `owf train --seeds` calls folders."""
    return re.sub(r"_seed_\d+$", "", name)


def arch_of_name(name: str) -> tuple[str | None, int | None]:
    """The arch and the width that a name says, such as ``owf_big_shared_enc_24576``; with or without ``owf_``.

    ``_seed_N`` at its end, as the folders of `owf train --seeds` have it, says nothing of either.
    """
    name = without_seed(name)
    found = re.fullmatch(r"(?:owf_)?(.+?)(?:_(\d{2,}))?", name)
    for text, dim in ((name, None), (found[1], found[2])) if found else ():
        arch = text if text.startswith("owf_") else f"owf_{text}"
        if arch in ARCHS:
            return arch, int(dim) if dim else None
    return None, None
