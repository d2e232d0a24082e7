"""The average of several checkpoints of one training, as a checkpoint."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from owf_fairseq.checkpoints.checkpoint import MADE_BY, PathLike, read_checkpoint
from owf_fairseq.checkpoints.stored_model import (
    FRESH_START,
    StoredModel,
    all_flag_defaults,
    describe_state,
    updates_of,
    without_further_names,
)
from owf_fairseq.errors import InputError, too_small
from owf_fairseq.files.fingerprint import known_data
from owf_fairseq.flags import flag_name
from owf_fairseq.models.tied_weights import broken_ties, tied_names, with_all_names

COMMAND = "owf average"
# the names that fairseq-train gives, those with a number first: last and best are copies of them
FILE_NAMES = (
    r"checkpoint\d+\.pt",
    r"checkpoint_\d+_\d+\.pt",
    r"checkpoint\.best_.+\.pt",
    r"checkpoint_(best|last)\.pt",
)


@dataclass(frozen=True)
class RankedCheckpoint:
    """A checkpoint in a folder.

    Attributes:
        file: its path.
        updates: after how many updates it was written.
        score: its score in validation; None if it was not validated.
        higher_is_better: fairseq's ``--maximize-best-checkpoint-metric``.
    """

    file: Path
    updates: int
    score: float | None
    higher_is_better: bool


def candidates(folder: PathLike) -> list[RankedCheckpoint]:
    """The checkpoints that fairseq-train has written into a folder, in the order of their updates, none twice.

    Raises:
        InputError: there is no such folder, or a checkpoint in it cannot be read.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path} is not a folder: `--last` and `--best` choose among the checkpoints of a folder")
    found: dict[int, RankedCheckpoint] = {}
    problems: list[str] = []
    for pattern in FILE_NAMES:
        for file in sorted(path.iterdir()):
            if not re.fullmatch(pattern, file.name):
                continue
            try:
                state = read_checkpoint(file, read_tensors=False)
            except InputError as error:
                problems += error.problems
                continue
            extra = state.get("extra_state") or {}
            if MADE_BY in extra:
                continue
            better = bool(((state.get("cfg") or {}).get("checkpoint") or {}).get("maximize_best_checkpoint_metric"))
            score = extra.get("val_loss")
            candidate = RankedCheckpoint(file, updates_of(state), None if score is None else float(score), better)
            found.setdefault(candidate.updates, candidate)
    if problems:
        raise InputError(problems)
    return [found[updates] for updates in sorted(found)]


def last(folder: PathLike, number: int) -> list[Path]:
    """The checkpoints with the most updates, the latest first.

    Raises:
        InputError: there are fewer.
    """
    found = candidates(folder)
    _check_number("--last", number, len(found), f"{folder} has {len(found)} checkpoints of different updates")
    return [candidate.file for candidate in found[: -number - 1 : -1]]


def best(folder: PathLike, number: int) -> list[Path]:
    """The checkpoints with the best scores, the best first.

    The score is the one that fairseq-train recorded: of ``--best-checkpoint-metric``, the validation loss if that was
    not given. Of equal ones the later is taken.

    Raises:
        InputError: there are fewer that were validated.
    """
    found = [candidate for candidate in candidates(folder) if candidate.score is not None]
    _check_number("--best", number, len(found), f"{folder} has {len(found)} validated checkpoints of different updates")

    def rank(candidate: RankedCheckpoint) -> tuple[float, int]:
        assert candidate.score is not None
        return (-candidate.score if candidate.higher_is_better else candidate.score), -candidate.updates

    return [candidate.file for candidate in sorted(found, key=rank)[:number]]


def _check_number(flag: str, number: int, there: int, found: str) -> None:
    if number < 1:
        raise InputError(too_small(flag, number))
    if number > there:
        raise InputError(
            f"`{flag}` is {number}, but {found} (`--keep-last-epochs`, `--keep-interval-updates` and "
            "`--no-epoch-checkpoints` of fairseq-train say how many are kept)"
        )


def average(files: Sequence[PathLike]) -> dict[str, Any]:
    """The checkpoint with the mean of every weight.

    The mean is computed in float64 and rounded once, to the type that is stored. What else a checkpoint holds is that
    of the one with the most updates, without optimizer state: training from it starts at its first update.

    Args:
        files: checkpoints of one arch with the same weights.

    Raises:
        InputError: with every problem of the files at once.
    """
    if not files:
        raise InputError("name the checkpoints to average, or a folder with `--last N` or `--best N`")
    if len({Path(file).resolve() for file in files}) < len(files):
        raise InputError("the same checkpoint is named twice")
    problems: list[str] = []
    first: _Contents | None = None
    totals: dict[str, Tensor] = {}
    newest: dict[str, Any] = {}
    averaged = []
    for file in files:  # one after the other: many large ones need not fit into the memory
        try:
            if Path(file).is_dir():
                raise InputError(f"{file} is a folder: choose among its checkpoints with `--last N` or `--best N`")
            model = describe_state(read_checkpoint(file), str(file))
            model.check()
        except InputError as error:
            problems += error.problems
            continue
        contents = _Contents(model)
        first = first or contents
        problems += [f"{file}: {problem}" for problem in broken_ties(model.skeleton, model.state["model"])]
        problems += _differences(first, contents)
        if not problems:
            _add(totals, without_further_names(contents.weights(model), contents.ties))
        averaged.append({"file": str(file), "updates": updates_of(model.state)})
        rest = {key: value for key, value in model.state.items() if key not in _REPLACED}
        newest = max(newest, rest, key=updates_of)
    if problems or first is None:
        raise InputError(problems)

    mean = {name: (total / len(files)).to(first.tensors[name][1]) for name, total in totals.items() if _is_float(total)}
    weights = {name: mean.get(name, total) for name, total in totals.items()}
    if not first.is_ours:  # plain fairseq wants every name
        for name, further in first.ties.items():
            weights |= {other: weights[name] for other in further if other in first.tensors}
    extra_state = {"train_iterator": dict(FRESH_START), "val_loss": None, "averaged": averaged, **known_data(newest)}
    return {**copy.deepcopy(newest), "model": weights, "extra_state": extra_state}


_OF_TRAINING = r"dropout|layerdrop|activations$|^quant_noise|^min_params_to_wrap$|embed_path$"
"""Flags of the model that training may change without making it another model."""

_REPLACED = ("model", "extra_state", "last_optimizer_state")


class _Contents:
    """What two checkpoints must have in common, without their weights."""

    def __init__(self, model: StoredModel) -> None:
        self.file, self.arch, self.plan, self.is_ours = model.file, model.arch, model.plan, model.is_ours
        self.ties = tied_names(model.skeleton)
        weights = self.weights(model)
        self.tensors = {name: (tuple(t.shape), t.dtype) for name, t in weights.items()}
        self.numbers = {name: t for name, t in weights.items() if not _is_float(t)}
        names = [name for name in all_flag_defaults(self.arch) if not re.search(_OF_TRAINING, name)]
        self.flags = {name: getattr(model.args, name, None) for name in names}

    @staticmethod
    def weights(model: StoredModel) -> dict[str, Tensor]:
        """As they are stored, under every name: a file may have a shared one under a further name only."""
        return with_all_names(model.skeleton, model.state["model"])


def _is_float(tensor: Tensor) -> bool:
    return tensor.is_floating_point()


def _add(totals: dict[str, Tensor], weights: dict[str, Tensor]) -> None:
    """Adds weights to the totals, in float64; what is no number with a fraction stays as it is."""
    for name, tensor in weights.items():
        if not _is_float(tensor):
            totals[name] = tensor
        elif name in totals:
            totals[name] += tensor
        else:
            totals[name] = tensor.to(torch.float64, copy=True)


def _differences(first: _Contents, other: _Contents) -> list[str]:
    """What keeps two checkpoints from being averaged."""
    here = f"{other.file} differs from {first.file}: "
    if other.arch != first.arch:
        return [here + f"its arch is {other.arch}, not {first.arch}"]
    if other.plan.patterns != first.plan.patterns:
        return [here + "other blocks are shared or dropped"]
    for name, value in first.flags.items():
        if other.flags[name] != value:
            return [here + f"its `{flag_name(name)}` is {other.flags[name]}, not {value}"]
    problems = [here + f"only one of them has {name}" for name in sorted(first.tensors.keys() ^ other.tensors.keys())]
    for name in sorted(first.tensors.keys() & other.tensors.keys()):
        (shape, dtype), (other_shape, other_dtype) = first.tensors[name], other.tensors[name]
        if shape != other_shape:
            shapes = " and ".join("x".join(map(str, numbers)) for numbers in (other_shape, shape))
            problems.append(here + f"the shapes of {name} are {shapes}")
        elif dtype != other_dtype:
            problems.append(here + f"{name} is stored as {other_dtype} and {dtype}")
        elif name in first.numbers and not torch.equal(first.numbers[name], other.numbers[name]):
            problems.append(here + f"{name} has no mean, and other values")
    return problems[:3] + ([here + f"... and {len(problems) - 3} more"] if len(problems) > 3 else [])
