"""Progress on a terminal and in a log."""

import contextlib
import fcntl
import io
import os
import struct
import termios

from owf_fairseq.progress import Progress


def test_a_bar_on_a_terminal_and_lines_that_do_not_break_it():
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with os.fdopen(slave, "w") as terminal:
        with Progress("sentences", 4, terminal) as progress:
            progress.advance(1, "20 tokens/s")
            progress.say("a warning")
            progress.advance(3, "30 tokens/s")
        terminal.flush()
    shown = b""
    with contextlib.suppress(OSError):  # the end, on Linux
        while chunk := os.read(master, 4096):
            shown += chunk
    os.close(master)
    drawn = shown.decode().replace("\r", "\n").split("\n")
    assert "a warning" in [line.strip() for line in drawn]
    assert any("4/4" in line and "sentences/s" in line and "30 tokens/s" in line for line in drawn)


def test_plain_lines_in_a_log():
    log = io.StringIO()
    with Progress("batches", 3, log, label="scoring", seconds=0) as progress:
        progress.advance(2, "fast")
        progress.say("a warning")
    first, second = log.getvalue().splitlines()
    assert first.startswith("scoring: 2 of 3 batches after ")
    assert first.endswith(", fast")
    assert second == "a warning"


def test_a_log_is_not_flooded():
    log = io.StringIO()
    with Progress("batches", 1000, log) as progress:
        for _ in range(1000):
            progress.advance(1)
    assert log.getvalue() == ""


def test_the_time_that_is_left_is_of_this_run_alone(monkeypatch):
    log = io.StringIO()
    now = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr("owf_fairseq.progress.time.monotonic", lambda: next(now))
    with Progress("lines", 1000, log, seconds=5) as progress:
        progress.resume(800)
        progress.advance(10)
        progress.advance(190)
    first, last = log.getvalue().splitlines()
    assert first == "810 of 1,000 lines after 10 s, 3 min left"
    assert last == "1,000 of 1,000 lines after 20 s"


def test_what_is_resumed_counts_on_a_terminal():
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as terminal, Progress("sentences", 4, terminal) as progress:
        progress.resume(3)
        progress.advance(1)
        assert (progress.bar.n, progress.bar.initial, progress.done) == (4, 3, 4)
    os.close(master)
