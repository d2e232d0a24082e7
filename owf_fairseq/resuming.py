"""What fairseq lacks to go on after an interruption: whole files, the place in the epoch, several processes.

It holds for every training that the plugin is part of, with plain ``fairseq-train --user-dir`` too.
"""

from __future__ import annotations

import logging
import math
import os
from argparse import Namespace
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import torch
from fairseq.data.iterators import EpochBatchIterator
from fairseq.distributed import utils as distributed
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from owf_fairseq.compat import torch_version
from owf_fairseq.errors import InputError
from owf_fairseq.files.fingerprint import KEY, fingerprint

BATCHES = "batches_in_epoch"
"""In the state of the iterator beside fairseq's ``iterations_in_epoch``: of how many, for each process."""

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


def make_training_resumable() -> None:
    """Changes fairseq's functions, each once in a process."""
    allow_what_processes_send()
    _wrap(distributed, "_broadcast_object_slow", _sends_plain_containers)
    _wrap(PathManager, "copy", _copies_whole, static=True)
    _wrap(EpochBatchIterator, "state_dict", _tells_how_many_batches)
    _wrap(EpochBatchIterator, "load_state_dict", _carries_the_place_over)
    _wrap(Trainer, "get_train_iterator", _tells_update_freq)
    _wrap(Trainer, "save_checkpoint", _adds_the_fingerprint)


def _wrap(owner: Any, name: str, wrapper: Callable[[F], F], *, static: bool = False) -> None:
    """Puts a function around one of fairseq's, unless it is there already."""
    original = getattr(owner, name)
    if getattr(original, "by_owf", False):
        return
    new = wraps(original)(wrapper(original))
    vars(new)["by_owf"] = True
    setattr(owner, name, staticmethod(new) if static else new)


def allow_what_processes_send() -> None:
    """Lets torch read, under ``weights_only``, what rank 0 sends to the others of a checkpoint that it has read.

    Beside what a checkpoint holds these are fairseq's marks for tensors, which are sent on their own. Neither they nor
    small numbers of numpy's run code while they are made.
    """
    if torch_version() < (2, 4):
        return
    scalars = (np.int8, np.int16, np.uint8, np.uint16, np.uint32, np.uint64)
    torch.serialization.add_safe_globals(
        [distributed._TensorPlaceholder, *(type(np.dtype(scalar)) for scalar in scalars)]
    )


def _sends_plain_containers(send: Callable[..., Any]) -> Callable[..., Any]:
    """The flags of a checkpoint are omegaconf's while fairseq holds them; to read its classes back would run them."""

    def broadcast(obj: Any, *args: Any, **kwargs: Any) -> Any:
        return send(without_omegaconf(obj), *args, **kwargs)

    return broadcast


def without_omegaconf(obj: Any) -> Any:
    """The same with dictionaries and lists in place of omegaconf's, as in the file of a checkpoint."""
    if OmegaConf.is_config(obj):
        return without_omegaconf(OmegaConf.to_container(obj, resolve=True, enum_to_str=True))
    if type(obj) is dict:
        return {key: without_omegaconf(value) for key, value in obj.items()}
    if type(obj) in (list, tuple):
        return type(obj)(without_omegaconf(value) for value in obj)
    if isinstance(obj, Namespace):
        return Namespace(**without_omegaconf(vars(obj)))
    return obj


def _copies_whole(copy: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq copies a new checkpoint onto the last and the best one: a kill would leave half of it there."""

    def copy_whole(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if not overwrite or PathManager.path_requires_pathmanager(dst_path):
            return copy(src_path, dst_path, overwrite)
        temporary = f"{dst_path}.tmp"
        try:
            done = copy(src_path, temporary, True)
            os.replace(temporary, dst_path)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise
        return done

    return copy_whole


def _tells_how_many_batches(state_dict: Callable[..., Any]) -> Callable[..., Any]:
    def with_batches(self: EpochBatchIterator) -> dict[str, Any]:
        state: dict[str, Any] = state_dict(self)
        return {**state, BATCHES: len(self)} if state.get("iterations_in_epoch") else state

    return with_batches


def _carries_the_place_over(load: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq counts batches, but of another size, or of another number of processes, there are more or fewer."""

    def load_share(self: EpochBatchIterator, state: dict[str, Any]) -> None:
        position = state.get("iterations_in_epoch", 0)
        if position and state.get("version", 1) > 1:
            self.epoch = state["epoch"]
            place = place_in_epoch(position, state.get(BATCHES), len(self), getattr(self, "owf_update_freq", 1))
            if place != position:
                logger.info(
                    f"{position} batches of epoch {self.epoch} were read: going on after {place} of {len(self)}"
                )
            state = {**state, "iterations_in_epoch": place}
        load(self, state)

    return load_share


def place_in_epoch(position: int, before: int | None, now: int, update_freq: int) -> int:
    """Where to go on in an epoch.

    Args:
        position: batches that each process has read.
        before: of how many; None in a checkpoint that does not say so.
        now: how many the epoch has now for each process.
        update_freq: batches for an update: fairseq goes on at whole updates only.

    Returns:
        Batches to leave out: for the same settings, those that were read; else as large a share of the epoch, but the
        last update at least is left.

    Raises:
        InputError: the checkpoint doesn't say how many there were, and there are fewer now than it has read.
    """
    if before is None and position >= now:
        raise InputError(
            f"the checkpoint was written after {position} batches of its epoch, of which there are {now} now: give the "
            "batch size and the number of processes that it was trained with, or `--reset-dataloader` to begin with "
            "the first epoch's data again"
        )
    if before in (None, now) and position % update_freq == 0:
        return position
    updates = math.ceil(now / update_freq)
    return min(updates - 1, round(position / (before or now) * updates)) * update_freq


def _tells_update_freq(get_train_iterator: Callable[..., Any]) -> Callable[..., Any]:
    """The iterator does not know how many batches are for one update; the fingerprint is that of when it began."""

    def get(self: Trainer, epoch: int, *args: Any, **kwargs: Any) -> Any:
        iterator = get_train_iterator(self, epoch, *args, **kwargs)
        each = self.cfg.optimization.update_freq
        iterator.owf_update_freq = each[min(epoch, len(each)) - 1]
        if not hasattr(self, "owf_fingerprint"):
            self.owf_fingerprint = fingerprint(getattr(self.cfg.task, "data", None) or os.devnull)
        return iterator

    return get


def _adds_the_fingerprint(save: Callable[..., Any]) -> Callable[..., Any]:
    def with_fingerprint(self: Trainer, filename: str, extra_state: dict[str, Any]) -> Any:
        return save(self, filename, {**extra_state, KEY: getattr(self, "owf_fingerprint", {})})

    return with_fingerprint
