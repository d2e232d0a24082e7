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
