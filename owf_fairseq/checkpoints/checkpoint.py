"""Files of checkpoints: read without running what is in them, written whole or not at all."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from owf_fairseq import compat
from owf_fairseq.errors import InputError
from owf_fairseq.files import archives
from owf_fairseq.files.lines import PathLike
from owf_fairseq.files.outputs import check_output_file, output_file

MADE_BY = "made_by"
"""In the ``extra_state`` of a checkpoint that one of our tools has written: which one."""

_ZIP, _PICKLE = b"PK", b"\x80"  # how a file starts that torch has written, since 1.6 and before

_NUMBER = (int, float, np.number)
_KINDS: dict[tuple[str, ...], tuple[type, ...]] = {
    ("cfg",): (dict,),
    ("cfg", "model"): (dict, Namespace),
    ("cfg", "task"): (dict, Namespace),
    ("cfg", "common"): (dict,),
    ("cfg", "checkpoint"): (dict,),
    ("cfg", "checkpoint", "best_checkpoint_metric"): (str,),
    ("args",): (dict, Namespace),
    ("extra_state",): (dict,),
    ("extra_state", "train_iterator"): (dict,),
    ("extra_state", "train_iterator", "epoch"): (int,),
    ("extra_state", "val_loss"): _NUMBER,
    ("extra_state", "best"): _NUMBER,
    ("extra_state", "made_by"): (str,),
    ("extra_state", "converted_from"): (dict,),
    ("extra_state", "converted_from", "file"): (str,),
    ("extra_state", "converted_from", "arch"): (str,),
    ("extra_state", "averaged"): (list,),
    ("extra_state", "averaged", "*"): (dict,),
    ("extra_state", "averaged", "*", "file"): (str,),
    ("optimizer_history",): (list,),
    ("optimizer_history", "*"): (dict,),
    ("optimizer_history", "*", "optimizer_name"): (str,),
    ("optimizer_history", "*", "num_updates"): (int,),
}
"""What our tools read of a checkpoint beside its weights, ``*`` for each entry of a list; each may also be missing or
None. The flags of the model have types of their own: see ``recorded_flags.py``."""

_NOT_NONE = {("optimizer_history", "*"), ("optimizer_history", "*", "num_updates"), ("extra_state", "averaged", "*")}
_LARGEST = 2**53  # of a count that a training can have reached


def read_checkpoint(path: PathLike, *, read_tensors: bool = True) -> dict[str, Any]:
    """Reads a checkpoint of fairseq's without running what is in it.

    Neither the task, the data nor the ``--user-dir`` that is recorded in it is needed.

    Args:
        path: the file.
        read_tensors: False for one who looks at everything else only: they stay on the disk, unchecked. A training may
            write over the file, and so they must not be used.

    Raises:
        InputError: there is no such file, it is empty, damaged or no checkpoint of fairseq's, or it would run code.
    """
    name = os.fspath(path)
    file = Path(path)
    if os.path.isdir(file):
        raise InputError(f"{name} is a folder: name a checkpoint in it" + _others(file / "-", " ({})"))
    try:
        with open(file, "rb") as stream:
            start = stream.read(2)
    except OSError as error:
        raise InputError(
            f"{name} can't be read: {error.strerror or error}" + _others(file, "; beside it: {}")
        ) from error
    if not start:
        raise InputError(f"{name} is empty" + _what_to_do(file))
    if not start.startswith((_ZIP, _PICKLE)):
        raise InputError(_not_of_torch(file))
    if start == _ZIP:
        _check_zip(file, sums=read_tensors)
    try:
        state = compat.load_safely(name, mapped=start == _ZIP and not read_tensors)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # torch raises what it happens to stumble over
        needs = re.search(r"(?:GLOBAL|[Uu]nsupported class) ([\w.]+)", str(error))
        if needs:
            if needs[1].startswith("fairseq."):
                way_out = (
                    "an old fairseq (before 0.9) stored such objects of its own; a copy with only `model` and `args` "
                    "or `cfg` can be read: make one with torch where you trust the file"
                )
            else:
                way_out = "get the file again from where you trust it"
            raise InputError(
                f"{name} was not read, because {needs[1]} would be called to do so, and that can run any code: "
                + way_out
            ) from error
        reason = torchs_reason(error)
        raise InputError(f"{name} is cut off or damaged ({reason})" + _what_to_do(file)) from error
    _check_kinds(state, name)
    return state


def check_checkpoint(path: PathLike) -> dict[str, Any]:
    """Reads all but the tensors of a checkpoint, and compares the sums of these: little memory, however large it is.

    Raises:
        InputError: as ``read_checkpoint``.
    """
    state = read_checkpoint(path, read_tensors=False)
    with open(path, "rb") as stream:
        is_zip = stream.read(2) == _ZIP
    if is_zip:
        _check_zip(Path(path), sums=True)
    return state


def _check_kinds(state: Any, name: str) -> None:
    """Refuses what has another form than fairseq's checkpoints, as far as our tools read it."""
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        hint = " but weights alone" if isinstance(state, dict) and _are_tensors(state) else ""
        raise InputError(f"{name} is not a fairseq checkpoint{hint}: it has no `model` with the flags beside it")
    if not _are_tensors(state["model"]):
        raise InputError(f"{name} is not a fairseq checkpoint: its `model` holds something else than tensors")
    if state.get("cfg") is None and state.get("args") is None:
        raise InputError(f"{name} has weights, but not the flags of its model (`cfg`): fairseq cannot load it either")
    for path, kinds in _KINDS.items():
        for value in _values_at(state, path):
            missing = value is None and path not in _NOT_NONE
            if not missing and not (isinstance(value, kinds) and _is_usual(value)):
                where = ".".join(path).replace(".*", "")
                many = isinstance(value, kinds) and type(value) is int
                shown = "a number of many digits" if many else _a(value)
                has = "holds" if path[-1] == "*" else "is"
                raise InputError(f"{name} is not a checkpoint of fairseq-train: its `{where}` {has} {shown}")


def _is_usual(value: object) -> bool:
    return type(value) is not int or abs(value) <= _LARGEST


def _values_at(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """All that is at a path of ``_KINDS``; nothing where there is no such path."""
    if not path:
        yield value
    elif path[0] == "*":
        for entry in value if isinstance(value, list) else ():
            yield from _values_at(entry, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _values_at(value[path[0]], path[1:])


def torchs_reason(error: Exception) -> str:
    """What torch says of a file that it can't read, in one line, without its advice to turn its safety off."""
    reason = (str(error).partition("WeightsUnpickler error: ")[2] or str(error)).strip() or type(error).__name__
    reason = reason.splitlines()[0]
    return "torch can't read it safely" if "weights_only" in reason else reason


def _a(value: object) -> str:
    kind = type(value).__name__
    return ("an " if kind[0] in "aeiou" else "a ") + kind


def write_checkpoint(state: dict[str, Any], path: PathLike, made_by: str) -> None:
    """Writes a checkpoint, whole or not at all.

    Args:
        state: as fairseq writes it.
        path: the file; one that the same tool made is replaced.
        made_by: the tool.

    Raises:
        InputError: there is a file of that name that the tool did not make.
    """
    problems = check_output_checkpoint(path, made_by)
    if problems:
        raise InputError(problems)
    state["extra_state"][MADE_BY] = made_by
    with output_file("--output", path) as temporary:
        try:
            torch.save(state, temporary)
        except RuntimeError as error:  # what torch makes of a full disk
            raise OSError(f"{error}".split("\n")[0]) from error


def check_output_checkpoint(path: PathLike, made_by: str, inputs: Sequence[PathLike] = ()) -> list[str]:
    """What forbids a tool to write this file: nothing if it is not there yet, or if the tool made it.

    Args:
        path: the file.
        made_by: the tool.
        inputs: files that the tool reads.
    """
    problems = check_output_file("--output", path, overwrite=True, inputs=inputs)
    if problems or not os.path.lexists(path):
        return problems
    name = os.fspath(path)
    try:
        made = read_checkpoint(path, read_tensors=False)["extra_state"].get(MADE_BY) == made_by
    except (InputError, KeyError, AttributeError):
        made = False
    return (
        [] if made else [f"`--output` {name} exists, and `{made_by}` did not make it: name another file, or remove it"]
    )


def _are_tensors(state: Mapping[str, Any]) -> bool:
    return bool(state) and all(isinstance(key, str) and isinstance(value, Tensor) for key, value in state.items())


def _not_of_torch(file: Path) -> str:
    return f"{file} is not a file that torch has written: name a checkpoint of fairseq-train (*.pt)"


def _check_zip(file: Path, *, sums: bool) -> None:
    try:
        names = archives.check_archive(file, sums=sums)
    except InputError as error:
        raise InputError(problem + _what_to_do(file) for problem in error.problems) from error
    if archives.is_torchscript(names):
        raise InputError(f"{file} {archives.TORCHSCRIPT}: name a checkpoint of fairseq-train (*.pt)")
    if not any(name.endswith("data.pkl") for name in names):
        raise InputError(_not_of_torch(file))


def _what_to_do(file: Path) -> str:
    return ": it was not written or copied to its end; take another checkpoint of the same training" + _others(
        file, " ({}), and give it to fairseq-train as `--restore-file` to go on from there"
    )


def _others(file: Path, text: str) -> str:
    """Up to three checkpoints beside the file, put into the text; nothing if there are none."""
    found = []
    with suppress(OSError):  # a folder that may not be listed
        for other in file.parent.glob("checkpoint*.pt"):
            with suppress(OSError):  # a link to nothing, or a training has just removed it
                status = other.stat()
                if other.is_file() and status.st_size > 0 and other.name != file.name:
                    found.append((status.st_mtime, other.name))
    found.sort(reverse=True)
    return text.format(", ".join(name for _, name in found[:3])) if found else ""
