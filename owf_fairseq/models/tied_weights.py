"""Shared weights in a model's state: each stored once, and refused where its copies differ.

fairseq and torch write a shared tensor under every name that it has, and read the names one after the other: the last
one wins, in silence, where they differ. Here a tensor has one name, that of the first layer that uses it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from owf_fairseq.errors import InputError


def tied_names(model: nn.Module) -> dict[str, list[str]]:
    """The further names of every shared parameter or buffer, by its first name.

    The names are in the order of the model's layers: the first is that of the first layer that uses the tensor.
    """
    names: dict[int, list[str]] = {}
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    for name, tensor in named:
        names.setdefault(id(tensor), []).append(name)
    return {first: further for first, *further in names.values() if further}


def store_once(model: nn.Module, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any]) -> None:
    """A state-dict hook of torch: removes the further names of shared tensors, in place.

    Args:
        model: whose state it is.
        state_dict: as torch has made it.
        prefix: of the model's names in it (``module.`` where the model is wrapped).
        local_metadata: torch's, not used.
    """
    for further in tied_names(model).values():
        for name in further:
            state_dict.pop(prefix + name, None)


def fill_in(model: nn.Module, state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state with every name of every shared tensor, as a strict ``load_state_dict`` wants it.

    Args:
        model: that is to load the state.
        state_dict: with each shared tensor under at least one of its names. Where there are several, as in the
            checkpoint of a model that shared less, they must be equal.

    Returns:
        A new dict; the tensors are those of the given one.

    Raises:
        InputError: a tensor that the model shares has different values under different names.
    """
    problems = broken_ties(model, state_dict)
    if problems:
        shown = problems[:5] + ([f"... and {len(problems) - 5} more"] if len(problems) > 5 else [])
        raise InputError(
            [
                *shown,
                "the checkpoint is of a model that shares less: load it into the arch that it was trained with, or "
                "make one that fits this model of it: `owf convert CHECKPOINT --to ARCH --output FILE`",
            ]
        )
    return with_all_names(model, state_dict)  # what copies there are, are equal


def with_all_names(model: nn.Module, state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state with the missing names of shared tensors; copies that are there stay as they are."""
    filled = copy.copy(state_dict)  # keeps the metadata that torch attaches
    for first, further in tied_names(model).items():
        names = [first, *further]
        there = [name for name in names if name in filled]
        for name in names if there else []:
            filled.setdefault(name, filled[there[0]])
    return filled


def broken_ties(model: nn.Module, state_dict: Mapping[str, Any]) -> list[str]:
    """What the model shares, and the state has several values for: a sentence for each name, with the difference."""
    problems = []
    for first, further in tied_names(model).items():
        there = [name for name in (first, *further) if name in state_dict]
        for name in there[1:]:
            difference = largest_difference(state_dict[there[0]], state_dict[name])
            if difference != 0:
                by = "they differ in shape" if difference is None else f"they differ by up to {difference:.3g}"
                problems.append(f"{there[0]} and {name} are one weight in this model, but in the checkpoint {by}")
    return problems


def largest_difference(one: Tensor, other: Tensor) -> float | None:
    """The largest difference of two tensors' elements; 0 where both are the same NaN, None if the shapes differ."""
    if one.shape != other.shape:
        return None
    if one.data_ptr() == other.data_ptr() or torch.equal(one, other):
        return 0.0
    difference = (one.double() - other.double()).abs()
    both_nan = one.isnan() & other.isnan()
    return difference.masked_fill(both_nan, 0).nan_to_num(nan=float("inf")).max().item()
