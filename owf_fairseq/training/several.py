"""Several trainings of one command: each in a folder of its own, some of them at a time, with short progress lines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import FrameType

from owf_fairseq.errors import InputError, collect
from owf_fairseq.training.run import Training, plan

LOG = "train.log"
TAIL = 20
"""Lines of the log of a training that failed, which are shown."""

OWF = (sys.executable, "-c", "import sys; from owf_fairseq.cli import main; sys.exit(main())")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Member:
    """One of several trainings.

    Attributes:
        name: of its folder.
        words: of ``owf train`` for it alone.
        training: what that runs.
    """

    name: str
    words: tuple[str, ...]
    training: Training


def members(
    configs: Sequence[str],
    words: Sequence[str] = (),
    run: str | None = None,
    seeds: Sequence[int] = (),
    data: str | None = None,
    fp32: bool = False,
) -> list[Member]:
    """Works out each training of a command.

    Args:
        configs: as ``plan`` takes one.
        words: flags of fairseq-train for all of them.
        run: a folder whose ``data`` they read, and where each gets a folder: the config's name, and the seed's.
        seeds: train each config with each of them; with the config's own if there are none.
        data: binary data instead of the run's.
        fp32: leave out what asks for half precision.

    Raises:
        InputError: with the problems of all of them.
    """
    problems: list[str] = []
    if run is None and (len(configs) > 1 or seeds):
        problems.append("several trainings need `--run DIR`: each gets a folder of its own in it")
    if run is not None and any(word.split("=")[0] == "--save-dir" for word in words):
        problems.append(
            "`--save-dir` does not go with `--run`, which gives each training a folder: leave one of them out"
        )
    if problems:
        raise InputError(problems)
    found: list[Member] = []
    for config in configs:
        for seed in seeds or (None,):
            own = [*words, *(() if seed is None else ("--seed", str(seed)))]
            name = run_name(config, seed)
            if run is not None:
                own += ["--save-dir", str(Path(run, name))]
            place = data or (data_folders(Path(run)) if run is not None else None)
            training = collect(problems, lambda c=config, w=own, d=place: plan(c, w, d, fp32))  # type: ignore[misc]
            flags = (*(("--data", place) if place else ()), *(("--fp32",) if fp32 else ()))
            if training is not None:
                found.append(Member(name, (config, *flags, *own), training))
    names = [member.name for member in found]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.append(f"several trainings would be in the folder {name} of `--run`: name each config, and seed, once")
    if len(found) > 1 and any(member.training.launch.launcher for member in found):
        problems.append("under torchrun or SLURM, train one CONFIG at a time")
    if problems:
        raise InputError(dict.fromkeys(problems))
    return found


def run_name(config: str, seed: int | None = None) -> str:
    """The name of a training's folder in the folder of a run."""
    name = Path(config).name.removesuffix(".yaml").removesuffix(".yml")
    return name if seed is None else f"{name}_seed_{seed}"


def data_folders(run: Path) -> str:
    """The binary data of a run, as fairseq takes them: ``data``, or its shards with ``:`` between."""
    shards = sorted((run / "data").glob("shard-*"))
    return os.pathsep.join(map(str, shards or [run / "data"]))


def jobs_by_default(trainings: Sequence[Training]) -> int:
    """How many are trained at a time: one that uses all GPUs, or as many as there are cores."""
    on_gpu = any(training.on_gpu for training in trainings)
    return 1 if on_gpu else min(len(trainings), len(os.sched_getaffinity(0)))


def train_members(wanted: Sequence[Member], jobs: int, say: Say, command: Sequence[str] = OWF) -> list[str]:
    """Trains all of them, each in a process with a log in its folder; those that fail don't hold up the others.

    On a CPU each has one thread where several are trained at a time: on two cores that is a quarter faster than one
    after the other with two threads each, and threads that wait for each other get several times slower as soon as
    another program runs beside.

    Args:
        wanted: the trainings.
        jobs: how many of them at a time.
        say: is told a line now and then.
        command: that is ``owf``.

    Returns:
        The names of those that failed.
    """
    environment = {**os.environ, **({"OMP_NUM_THREADS": "1"} if jobs > 1 else {})}
    processes = _Processes(command, environment)
    with processes.stopped_by_signals(), ThreadPoolExecutor(jobs) as pool:
        done = [pool.submit(_train_one, member, processes, say) for member in wanted]
        try:
            return [member.name for member, one in zip(wanted, done, strict=True) if not one.result()]
        except BaseException:  # Ctrl-C, most likely
            processes.stop()
            raise


def _train_one(member: Member, processes: _Processes, say: Say) -> bool:
    """Trains one, and tells whether it succeeded."""
    log = member.training.folder / LOG
    tail: list[str] = []
    process = processes.start(["train", *member.words])
    if process is None or process.stdout is None:
        return False
    say(f"{member.name}: the whole log is {log}")
    log.parent.mkdir(parents=True, exist_ok=True)
    with process, open(log, "a", encoding="utf-8") as file:
        for line in process.stdout:
            file.write(line)
            file.flush()
            tail = [*tail[1 - TAIL :], line]
            short = progress_line(line, member.training.args.max_update or 0)
            if short:
                say(f"{member.name}: {short}")
    if process.returncode:
        say(f"{member.name}: training failed with exit status {process.returncode}; its last lines:\n{''.join(tail)}")
    return process.returncode == 0


class _Processes:
    """Processes of ``owf`` that end when this one is asked to.

    Args:
        command: that is ``owf``.
        environment: of the processes.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command, self._environment = command, environment
        self._lock = Lock()
        self._running: list[subprocess.Popen[str]] = []
        self._stopped = False

    def start(self, words: Sequence[str]) -> subprocess.Popen[str] | None:
        """Starts one, whose outputs are both its standard output; None after ``stop``."""
        with self._lock:
            if self._stopped:
                return None
            process = subprocess.Popen(
                [*self._command, *words],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # a group with all that it starts
            )
            self._running.append(process)
            return process

    def stop(self) -> None:
        """Ends all, and lets none begin."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Within the block, SIGTERM ends this process in order, as Ctrl-C does."""

        def end(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        before = signal.signal(signal.SIGTERM, end)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


_TRAINED = re.compile(r"\| train_inner \|.*[ |]nll_loss[= ]([\d.]+).*[ |]wps[= ]([\d.]+).*[ |]num_updates[= ](\d+)")
_VALIDATED = re.compile(r"\| valid \|.*\| nll_loss ([\d.]+).*\| num_updates (\d+)")


def progress_line(line: str, max_update: int = 0) -> str | None:
    """What a line of fairseq-train's log tells in short; None if that is not worth telling."""
    of = f" of {max_update}" if max_update else ""
    if found := _TRAINED.search(line):
        loss, speed, updates = found.groups()
        return f"{updates}{of} updates, loss {loss} bits a token, {speed} tokens a second"
    if found := _VALIDATED.search(line):
        loss, updates = found.groups()
        return f"{updates}{of} updates, held-out loss {loss}"
    return None
