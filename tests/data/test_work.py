"""Work in processes: what is finished is kept, and nothing else stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from owf_fairseq.data.work import WorkerLost, Workers
from owf_fairseq.errors import InputError
from owf_fairseq.files.work_folder import WorkFolder


@dataclass(frozen=True)
class Part:
    number: int
    count: int = 1


@dataclass
class Made:
    square: int
    process: int


def square(part: Part, deadly: str) -> Made:
    """The work; part 3 kills its process as long as the file is there."""
    if part.number == 3 and os.path.exists(deadly):
        os.remove(deadly)
        os.kill(os.getpid(), signal.SIGKILL)
    return Made(part.number**2, os.getpid())


def fail_at_3(part: Part) -> Made:
    if part.number == 3:
        raise OSError("no space left on device")
    return Made(part.number**2, os.getpid())


@pytest.fixture
def light_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that don't import fairseq, as those of the command."""
    monkeypatch.setattr(sys, "argv", ["owf"])


def test_results_are_kept_over_a_failure_and_removed_at_the_end(tmp_path: Path) -> None:
    parts = [(Part(n), ()) for n in range(6)]
    with (
        pytest.raises(OSError, match="no space"),
        WorkFolder(tmp_path / "work", {"size": 1}) as work,
        Workers(1) as one,
    ):
        one.each(work, fail_at_3, Made, parts, "squares")
    with open(tmp_path / "work" / "journal.jsonl", "a") as journal:
        journal.write('{"step": "fail_at_3", "number": 3, "res')  # a run that was killed while it wrote this
    with WorkFolder(tmp_path / "work", {"size": 1}) as work, Workers(1) as one:
        assert sorted(work.results["fail_at_3"]) == [0, 1, 2]
        again = one.each(work, fail_at_3, Made, [part for part in parts if part[0].number != 3], "squares")
        assert {number: made.square for number, made in again.items()} == {0: 0, 1: 1, 2: 4, 4: 16, 5: 25}
    assert list(tmp_path.iterdir()) == []


def test_other_settings_start_afresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "work"
    settings = {"size": 1, "langs": ("en", "de")}
    with contextlib.suppress(KeyboardInterrupt), WorkFolder(folder, settings) as work:
        work.record("step", 0, {})
        (folder / "made").write_text("something")
        (folder / ".made.77.tmp").write_text("half of something")
        raise KeyboardInterrupt
    with contextlib.suppress(KeyboardInterrupt), WorkFolder(folder, settings) as work:
        assert work.results == {"step": {0: {}}}
        assert sorted(path.name for path in folder.iterdir()) == ["journal.jsonl", "lock", "made"]
        raise KeyboardInterrupt
    assert "going on where a run was interrupted" in capsys.readouterr().err
    with WorkFolder(folder, {"size": 2, "langs": ("en", "de")}) as work:
        assert work.results == {}
        assert sorted(path.name for path in folder.iterdir()) == ["journal.jsonl", "lock"]
    assert "other size: starting afresh" in capsys.readouterr().err


def test_an_error_of_the_input_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError), WorkFolder(tmp_path / "work", {}) as work, work.useless_after(InputError):
        raise InputError("not UTF-8")
    assert list(tmp_path.iterdir()) == []


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    with WorkFolder(tmp_path / "work", {}) as work:
        work.record("step", 0, {})
        with pytest.raises(InputError, match="another process is making"), WorkFolder(tmp_path / "work", {}):
            pass
        assert (tmp_path / "work" / "journal.jsonl").exists()


@pytest.mark.usefixtures("light_processes")
def test_a_killed_process_is_reported_and_its_part_done_again(tmp_path: Path) -> None:
    deadly = tmp_path / "deadly"
    deadly.touch()
    parts = [(Part(n), (str(deadly),)) for n in range(20)]
    with (
        pytest.raises(WorkerLost, match="the same command goes on from here"),
        WorkFolder(tmp_path / "work", {}) as work,
        Workers(2) as two,
    ):
        two.each(work, square, Made, parts, "squares")
    with WorkFolder(tmp_path / "work", {}) as work, Workers(2) as two:
        before = dict(work.results.get("square", {}))
        assert 3 not in before
        made = two.each(work, square, Made, parts, "squares")
    assert {number: result.square for number, result in made.items()} == {n: n**2 for n in range(20)}
    assert os.getpid() not in {result["process"] for result in before.values()}
    for number, result in before.items():
        assert made[number].process == result["process"]


PROGRAM = """
import os, sys, time
sys.argv = ["owf"]
from owf_fairseq.data.work import Workers
from owf_fairseq.files.work_folder import WorkFolder
from test_work import Part, Made, forever
from pathlib import Path
if __name__ == "__main__":
    with WorkFolder(Path(sys.orig_argv[-1]) / "work", {}) as work, Workers(2) as two:
        two.each(work, forever, Made, [(Part(n), (sys.orig_argv[-1],)) for n in range(2)], "parts")
"""


def forever(part: Part, folder: str) -> Made:
    (Path(folder) / f"{part.number}.pid").write_text(f"{os.getpid()}\n")
    time.sleep(60)
    return Made(0, 0)


def runs(process: str) -> bool:
    """Whether a process is there, and not only waits for its parent to notice its end."""
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_no_process_outlives_the_one_that_started_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    program = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(tmp_path)], env={**os.environ, "PYTHONPATH": paths}
    )
    until = time.monotonic() + 60
    while len(begun := [path.read_text().strip() for path in tmp_path.glob("*.pid")]) < 2 or "" in begun:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert all(map(runs, begun))
    program.kill()
    program.wait()
    while any(map(runs, begun)):
        assert time.monotonic() < until
        time.sleep(0.05)
