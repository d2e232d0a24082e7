"""A training by a config: what fairseq-train is given, what stands in the way, and the run itself."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from fairseq.utils import eval_str_list

import owf_fairseq
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.fingerprint import KEY, fingerprint
from owf_fairseq.files.lock import locked
from owf_fairseq.files.outputs import check_output_file
from owf_fairseq.patterns import as_words
from owf_fairseq.training.checks import (
    GROWING,
    MAXIMIZE,
    language_flags,
    language_problems,
    metric_problems,
    start_problems,
    validation_problems,
)
from owf_fairseq.training.config import Setting, find_config, read_config
from owf_fairseq.training.fairseq_flags import DATA, FairseqFlags, Values, parse
from owf_fairseq.training.processes import Batch, Launch, find_launch
from owf_fairseq.training.record import TRAINING_RECORD, Record, check_record, make_record, write_record
from owf_fairseq.training.start import Start, find_start, limits

HALF_PRECISION = ("fp16", "memory-efficient-fp16")
ON_CPU = ("memory-efficient-fp16", "fp16-no-flatten-grads")
"""With one of these, fairseq trains in half precision on a CPU too; else its copy of the weights needs CUDA."""
BFLOAT16 = ("bf16", "memory-efficient-bf16")

UNITS = {"max-tokens": "tokens", "batch-size": "sentences"}
"""What limits a batch: the first of these that is given counts."""


@dataclass(frozen=True)
class Training:
    """What is to be run.

    Attributes:
        config: as the user named it.
        flags: of fairseq-train, by name without dashes, with what follows each; the data are the first.
        args: all that fairseq reads from them.
        launch: how this process was started.
        batch: the size of an update; None where flags do not say.
        start: where it begins: ``flags`` lack those that were followed before.
    """

    config: str
    flags: dict[str, Values]
    args: argparse.Namespace
    launch: Launch
    batch: Batch | None
    start: Start

    @property
    def finished(self) -> str:
        """One line that says that there is no more to do; empty if there is."""
        if not self.start.finished:
            return ""
        return f"{self.folder} is finished: {self.start.finished}; with a larger limit the training goes on"

    @property
    def command(self) -> str:
        """The command for a shell."""
        lines = ["fairseq-train"]
        for words in map(shlex.join, flag_words(self.flags)):
            if len(lines[-1]) + len(words) > 110:
                lines.append("   ")
            lines[-1] += f" {words}"
        return " \\\n".join(lines)

    @property
    def folder(self) -> Path:
        """Where checkpoints are written."""
        return Path(self.args.save_dir)

    def describe_update(self) -> str:
        """One line on the size of an update, or that it is not known; empty if no flag says anything on it."""
        if self.batch is not None:
            return self.batch.describe(self.launch.processes, self.args.update_freq[0])
        if "update-freq" in self.flags:
            update_freq = self.flags["update-freq"][0]
            return f"the size of an update is not known, so --update-freq {update_freq} is passed on as it is"
        return ""

    def record(self) -> Record:
        """What is written into the folder."""
        device = "cuda" if _gpus(self.flags) else "cpu"
        wanted = self.batch.wanted if self.batch else None
        return {
            **make_record(self.config, self.flags, wanted, self.launch.processes, device),
            **self.start.record(),
            KEY: fingerprint(self.flags[DATA][0]),
        }

    @property
    def on_gpu(self) -> bool:
        """Whether it finds a GPU that it may use."""
        return _gpus(self.flags) > 0

    def problems_here(self) -> list[str]:
        """What this machine can't do of it, whether there are data or not."""
        problems = [
            f"`--{name}` is for TPUs in fairseq-train, and torch_xla, which it needs for them, is not installed: give "
            "`--fp16` on a GPU"
            for name in BFLOAT16
            if name in self.flags and find_spec("torch_xla") is None
        ]
        if "fp16" in self.flags and not self.on_gpu and not any(name in self.flags for name in ON_CPU):
            why = "`--cpu` is given" if "cpu" in self.flags else "there is none here"
            problems.append(f"half precision (fp16) needs a GPU, and {why}: add `--fp32`")
        return problems

    def problems(self) -> list[str]:
        """What stands in the way of running it here and now; of a finished one, only that it was another."""
        if self.finished:
            return check_record(self.folder, self.record())
        problems = [*self.problems_here(), *metric_problems(self.args), *language_problems(self.args)]
        gpus = _gpus(self.flags)
        for folder in self.flags[DATA][0].split(os.pathsep):
            if not Path(folder).exists():
                problems.append(f"there are no data in {folder}: make them (`owf prepare`), or name them, `--data DIR`")
        by_hand = "distributed-init-method" in self.flags
        if self.launch.launcher == "torchrun" and not gpus and not by_hand:
            problems.append(
                "under torchrun fairseq needs a GPU for each process: on CPUs give `--distributed-init-method` and "
                "`--distributed-rank` to each process (see `owf train --help`)"
            )
        if self.launch.launcher == "slurm" and "distributed-port" not in self.flags and not by_hand:
            problems.append(
                "fairseq connects the processes of a SLURM job only through a port that is free on the first node: "
                "add `--distributed-port`, for example 29500"
            )
        unwritable = check_output_file("--save-dir", self.folder / TRAINING_RECORD, overwrite=True)
        collect(problems, lambda: problems.extend(validation_problems(self.args)))
        problems += [
            *unwritable,
            *check_record(self.folder, self.record()),
            *start_problems(self.args, self.start, self.flags),
        ]
        if self.launch.rank == 0 and not unwritable and self.folder.is_dir():
            with contextlib.ExitStack() as stack:
                collect(problems, lambda: stack.enter_context(self.locked()))
        return problems

    def locked(self) -> AbstractContextManager[None]:
        """Keeps others out of the folder.

        Raises:
            InputError: another training is in it.
        """
        return locked(
            self.folder / ".lock",
            f"another `owf train` writes to {self.folder} now: wait, or give another `--save-dir`",
        )


def plan(
    config: str,
    words: Sequence[str] = (),
    data: str | None = None,
    fp32: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Training:
    """Works out what fairseq-train is to be given.

    Args:
        config: a file, or the name of one of the package's own.
        words: flags of fairseq-train, which win over the config's.
        data: fairseq's binary data instead of the config's, shards with ``:`` between.
        fp32: leave out what asks for half precision.
        environment: of this process, where launchers say what they started.

    Raises:
        InputError: with every problem of the config and the words.
    """
    settings = read_config(find_config(config))
    known = FairseqFlags(settings, words)
    given = known.given
    problems = _too_small(given)
    if "user-dir" in given:
        problems.append("`user-dir` is set by `owf train`: leave it out")
    data = data or (settings[DATA].value if DATA in settings else None)
    if data is None:
        problems.append(f"{config} names no `data`: give `--data DIR`")
    if problems or data is None:
        raise InputError(problems)
    for name in HALF_PRECISION if fp32 else ():
        given.pop(name, None)
    launch = _launch(given, environment)
    batch = _batch(settings, known, launch.processes)
    if batch is not None and "update-freq" not in known.typed:
        given["update-freq"] = (str(batch.update_freq(launch.processes)),)
    if given.get("lr-scheduler") == ("polynomial_decay",) and "max-update" in given:
        given.setdefault("total-num-update", given["max-update"])  # fairseq means it so, and fails without
    # as it was imported: fairseq compares the two, and a link may lead to the package
    user_dir = {"user-dir": (next(iter(owf_fairseq.__path__)),)}
    args = _parse(data, given)
    added = language_flags(args)
    if args.best_checkpoint_metric in GROWING:
        added[MAXIMIZE] = ()
    start = find_start(args, given)
    left_out = start.asked if start.followed else ()
    wanted = {name: value for name, value in {**given, **added}.items() if name not in left_out}
    if wanted != given:
        args = _parse(data, wanted)
    return Training(config, {DATA: (data,), **user_dir, **wanted}, args, launch, batch, start)


def _parse(data: str, given: Mapping[str, Values]) -> argparse.Namespace:
    """All that fairseq reads."""
    return parse(sum(flag_words({DATA: (data,), **given}), []))


def flag_words(flags: Mapping[str, Values]) -> list[list[str]]:
    """The words of fairseq-train's command line, flag by flag."""
    return [[*values] if name == DATA else as_words(f"--{name}", *values) for name, values in flags.items()]


def _unit(given: Mapping[str, Values]) -> str | None:
    """The flag that limits a batch."""
    return next((name for name in UNITS if name in given), None)


def _update_freq(given: Mapping[str, Values]) -> list[int]:
    """One number, or one for each epoch."""
    numbers: list[int] = eval_str_list(given.get("update-freq", ("1",))[0], type=int)
    return numbers


def _too_small(given: Mapping[str, Values]) -> list[str]:
    """The problems of numbers that make up an update."""
    names = [name for name in (_unit(given), "distributed-world-size") if name is not None and name in given]
    numbers = {name: int(given[name][0]) for name in names} | {"update-freq": min(_update_freq(given), default=0)}
    return [f"`{name}` must be at least 1, but is {number}" for name, number in numbers.items() if number < 1]


def _gpus(given: Mapping[str, Values]) -> int:
    """The GPUs of this machine that the training may use."""
    return 0 if "cpu" in given else torch.cuda.device_count()


def _launch(given: dict[str, Values], environment: Mapping[str, str]) -> Launch:
    """How many processes train together; fairseq is told where it would not know by itself."""
    launch = find_launch(environment, _gpus(given))
    if "distributed-rank" in given:
        launch = replace(launch, rank=int(given["distributed-rank"][0]))
    if "distributed-world-size" in given:
        return replace(launch, processes=int(given["distributed-world-size"][0]))
    # fairseq takes one GPU a node for a training on a single one, before it looks at the environment
    if launch.processes != max(1, torch.cuda.device_count()):
        given["distributed-world-size"] = (str(launch.processes),)
    return launch


def _batch(settings: Mapping[str, Setting], known: FairseqFlags, processes: int) -> Batch | None:
    """The size of an update: the config's for one process, or what the user's own ``--update-freq`` makes of it."""
    unit = _unit(known.given)
    update_freq, *of_later_epochs = _update_freq(known.given)
    if unit is None or of_later_epochs:
        return None
    size = int(known.given[unit][0])
    if "update-freq" in known.typed:
        wanted = size * update_freq * processes
    else:
        wanted = int(settings[unit].value if unit in settings else size) * update_freq
    return Batch(UNITS[unit], size, wanted)


def train(training: Training) -> None:
    """Runs fairseq-train in this process; a training that is finished stays as it is.

    Raises:
        InputError: another training is in the folder.
        SystemExit: fairseq's own.
    """
    if training.finished:
        return
    if training.launch.rank != 0:
        return _run_fairseq(training)
    training.folder.mkdir(parents=True, exist_ok=True)
    with training.locked():
        record = training.record()
        write_record(training.folder, record)
        _run_fairseq(training)
        write_record(training.folder, {**record, "finished": limits(training.args)})


def _run_fairseq(training: Training) -> None:
    import fairseq_cli.train

    # fairseq keeps the best score for the whole process
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    for name in ("best", "num_runs"):
        vars(fairseq_cli.train.should_stop_early).pop(name, None)
    argv, main = sys.argv, sys.modules["__main__"]
    # processes that fairseq starts, one a GPU, begin with these two: they log and register what fairseq-train's would
    sys.argv = ["fairseq-train", *sum(flag_words(training.flags), [])]
    sys.modules["__main__"] = fairseq_cli.train
    try:
        fairseq_cli.train.cli_main()
    finally:
        sys.argv, sys.modules["__main__"] = argv, main
