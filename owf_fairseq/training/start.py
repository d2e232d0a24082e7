"""Where a training starts: at the last checkpoint of its folder, at a file that flags name, or nowhere any more."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from owf_fairseq.checkpoints.checkpoint import MADE_BY, check_checkpoint, read_checkpoint
from owf_fairseq.errors import InputError
from owf_fairseq.training.record import Record, read_training_record

LAST = "checkpoint_last.pt"

SWITCHES = ("reset-dataloader", "reset-lr-scheduler", "reset-meters", "reset-optimizer")

START = ("restore-file", *SWITCHES)
"""Flags of fairseq's that say where to start, which it follows whenever the command is run."""

LIMITS = ("max-update", "max-epoch", "patience", "stop-time-hours", "stop-min-lr")
"""Flags that end a training."""


@dataclass(frozen=True)
class Start:
    """Where a training starts.

    Attributes:
        asked: those flags of ``START`` that were given, as the record has them.
        followed: whether the checkpoints of the folder come of them, so that they are to be left out now.
        checkpoint: what fairseq will load; None for a fresh model.
        state: what is in it beside tensors; None if it can't be read.
        finished: how far the training went, if there is no more to do.
        problems: what is wrong with the checkpoint.
    """

    asked: dict[str, str]
    followed: bool = False
    checkpoint: Path | None = None
    state: Mapping[str, Any] | None = None
    finished: str = ""
    problems: tuple[str, ...] = ()

    def record(self) -> Record:
        """What the folder's record says of it, for the next time that the command is run."""
        return {"start": self.asked, "start_followed": str(self.followed).lower()} if self.asked else {}


def find_start(args: argparse.Namespace, given: Mapping[str, tuple[str, ...]]) -> Start:
    """Looks into the folder of a training.

    The same command goes on: flags that say where to start are followed once, until there is a checkpoint that comes of
    them. fairseq writes them into each checkpoint; a training that has gone on says so in the folder's record.

    Args:
        args: all that fairseq reads.
        given: flags by name without dashes, with what follows each.
    """
    folder, last = Path(args.save_dir), Path(args.save_dir, LAST)
    asked = {name: " ".join(given[name]) or "true" for name in START if name in given}
    if asked.get("restore-file") == LAST:  # fairseq's default
        del asked["restore-file"]
    record = read_training_record(folder) or {}
    problems: list[str] = []
    state = _read(last, problems) if last.is_file() else None
    followed = state is not None and bool(asked)
    if followed and not _comes_of(asked, state):
        followed = record.get("start") == asked and record.get("start_followed") == "true"
    if asked and not followed and "restore-file" in asked:
        problems = []
        checkpoint = Path(asked["restore-file"])
        state = _read(checkpoint, problems)
        return Start(asked, False, checkpoint, state, problems=tuple(problems))
    if not last.is_file():
        finished = _limits_reached(args, record, folder)
        other = getattr(args, "continue_once", None) or getattr(args, "finetune_from_model", None)
        state = _read(Path(other), problems) if other and not finished else None
        return Start(asked, False, Path(other) if other else None, state, finished, tuple(problems))
    if state is None:
        problems = [f"{problem}{newest_whole(last)}" for problem in problems]
        return Start(asked, False, last, None, problems=tuple(problems))
    if asked and not followed:
        return Start(asked, False, last, state)
    return Start(asked, followed, last, state, _reached(args, state) or _limits_reached(args, record, folder))


def _read(path: Path, problems: list[str]) -> dict[str, Any] | None:
    try:
        return check_checkpoint(path)
    except InputError as error:
        problems += error.problems
        return None


def _comes_of(asked: Mapping[str, str], state: Mapping[str, Any] | None) -> bool:
    """Whether a checkpoint was written by a training with these flags."""
    flags = ((state or {}).get("cfg") or {}).get("checkpoint") or {}
    return flags.get("restore_file") == asked.get("restore-file", LAST) and all(
        bool(flags.get(name.replace("-", "_"))) == (name in asked) for name in SWITCHES
    )


def updates(state: Mapping[str, Any]) -> int:
    """After how many updates a checkpoint was written."""
    number = (state.get("optimizer_history") or [{}])[-1].get("num_updates")
    return number if isinstance(number, int) else 0


def limits(args: argparse.Namespace) -> dict[str, str]:
    """What ends a training, by flag, as the record has it once it has ended."""
    return {name: str(getattr(args, name.replace("-", "_"), None)) for name in LIMITS}


def _reached(args: argparse.Namespace, state: Mapping[str, Any]) -> str:
    """fairseq would make one more update where it has made enough, or would load everything to do nothing."""
    done, wanted = updates(state), args.max_update or 0
    if 0 < wanted <= done:
        return f"{done:,} updates, and `--max-update` is {wanted:,}"
    epoch = ((state.get("extra_state") or {}).get("train_iterator") or {}).get("epoch")
    if isinstance(epoch, int) and 0 < (args.max_epoch or 0) < epoch:
        return f"{epoch - 1:,} epochs, and `--max-epoch` is {args.max_epoch:,}"
    return ""


def _limits_reached(args: argparse.Namespace, record: Record, folder: Path) -> str:
    """By the record, for what no checkpoint says: early stopping, and a folder of which the last one was removed."""
    if record.get("finished") != limits(args) or not any(folder.glob("checkpoint*.pt")):
        return ""
    return f"it ended by one of {', '.join(f'`--{name}`' for name in LIMITS)}"


def newest_whole(damaged: Path) -> str:
    """Names the checkpoint of the folder with most updates that is whole; empty if there is none."""
    found = []
    for path in damaged.parent.glob("checkpoint*.pt"):
        try:
            state = read_checkpoint(path, read_tensors=False)
        except InputError:
            continue
        if path != damaged and MADE_BY not in (state.get("extra_state") or {}):
            found.append((updates(state), path.stat().st_mtime, path))
    for number, _, path in sorted(found, reverse=True):
        if _read(path, []) is not None:
            return f". The newest whole one, of {number:,} updates: `--restore-file {path}`"
    return ""
