#!/usr/bin/env python3
"""What a log of fairseq-train shows: speed, memory, and whether the training is healthy.

It is, if the loss fell and half precision found a loss scale to stay at; else the exit status is 1. Reads what
fairseq-train prints with `--log-format json`; with `--log-interval 1`, no update's peak of memory is missed.

example:
  fairseq-train ... --log-format json --log-interval 1 > train.log
  python scripts/training_log.py train.log
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ENDS = 5
"""Logged losses that are averaged, at the beginning and at the end."""

FALL = 0.9
"""The part of the first losses that the last must be below."""

SMALLEST_SCALE = 2.0**-4
"""fairseq begins at 128 and gives up at 0.0001; summed gradients of some thousand tokens fit from 16 to 64."""

_MARK = " | train_inner | "


@dataclass(frozen=True)
class Training:
    """A training, as it was logged.

    Attributes:
        logged: how many times.
        tokens_per_s: target tokens; median of the second half of what was logged.
        loss: the criterion's, bits a token, mean of the first and of the last ``ENDS``.
        loss_scale: the first and the last, None in single precision.
        overflows: updates that were left out, for which fairseq halved the scale.
        peak_gb: the most that tensors held of the GPU's memory in a logged update, in 2**30 bytes, as fairseq calls GB;
            None without a GPU.
    """

    logged: int
    tokens_per_s: float
    loss: tuple[float, float]
    loss_scale: tuple[float, float] | None
    overflows: int
    peak_gb: float | None

    def problems(self) -> list[str]:
        """What is not as it should be, a sentence each."""
        (first, last), found = self.loss, []
        if not (math.isfinite(last) and last < FALL * first):
            found.append(f"the loss went from {first:.2f} to {last:.2f}, and must fall below {FALL} of the first")
        if self.loss_scale is not None and self.loss_scale[1] < SMALLEST_SCALE:
            found.append(f"gradients overflowed {self.overflows} times, to a loss scale of {self.loss_scale[1]:g}")
        return found


def read_training(log: str) -> Training:
    """Reads what fairseq-train printed.

    Raises:
        ValueError: it logged no update.
    """
    logged = [json.loads(line.split(_MARK, 1)[1]) for line in log.splitlines() if _MARK in line]
    if not logged:
        raise ValueError("no update was logged in JSON")
    losses = [float(entry["loss"]) for entry in logged]
    scales = [float(entry["loss_scale"]) for entry in logged if "loss_scale" in entry]
    return Training(
        len(logged),
        statistics.median(float(entry["wps"]) for entry in logged[len(logged) // 2 :]),
        (statistics.fmean(losses[:ENDS]), statistics.fmean(losses[-ENDS:])),
        (scales[0], scales[-1]) if scales else None,
        log.count("gradient overflow detected"),
        _peak_gb(log, logged),
    )


def _peak_gb(log: str, logged: Sequence[Mapping[str, str]]) -> float | None:
    """fairseq logs how much of the GPU's memory an update's peak left free, and resets torch's counter of the peak."""
    free = [float(entry["gb_free"]) for entry in logged if "gb_free" in entry]
    _, found, rest = log.partition("total memory = ")
    return float(rest.split(" GB", 1)[0]) - min(free) if free and found else None


_VALIDATED = re.compile(r"\| valid \|.* \| loss ([\d.]+) .*\| nll_loss ([\d.]+) .*\| num_updates (\d+)")
_WALL = re.compile(r"\bwall[= ](\d+)")


def validations(log: str) -> dict[int, tuple[float, float]]:
    """The validations in a log that is not JSON: by the number of updates, loss and nll_loss in bits a token.

    Where an interrupted training went on from an earlier checkpoint, what it found then counts.
    """
    found = {int(updates): (float(loss), float(nll)) for loss, nll, updates in _VALIDATED.findall(log)}
    return dict(sorted(found.items()))


def training_seconds(log: str) -> int:
    """How long a training took, validations included, by a log that is not JSON.

    fairseq goes on counting after an interruption from what the checkpoint says; work that was lost does not count.
    """
    return int((_WALL.findall(log) or ["0"])[-1])


def telling_line(log: str) -> str:
    """The last line that tells of an error (fairseq goes on after lack of memory), or else the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "error:" in line or "out of memory" in line]
    return (errors or lines or ["it printed nothing"])[-1][-300:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, help="what fairseq-train printed")
    try:
        training = read_training(parser.parse_args().log.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"training_log: {error}", file=sys.stderr)
        return 2
    for name, value in vars(training).items():
        print(f"{name}: {value}")
    for problem in training.problems():
        print(f"training_log: {problem}", file=sys.stderr)
    return int(bool(training.problems()))


if __name__ == "__main__":
    sys.exit(main())
