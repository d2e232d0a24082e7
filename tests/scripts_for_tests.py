"""Runs the shell scripts as a user does. Their ``owf`` answers from this process: that spares imports of fairseq."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from unittest import mock

from fairseq import checkpoint_utils
from fairseq_for_tests import REPOSITORY

from owf_fairseq import cli

SHARED_DATA = REPOSITORY.parent / "shared" / "data"
"""Text for developers' tests, which is not part of the repository: tests that read it skip where it isn't there."""

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    with connection.makefile("rw", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(json.dumps([os.getcwd(), sys.argv[1:]]) + "\\n")
        stream.flush()
        answer = json.loads(stream.readline())
for channel in ("stdout", "stderr"):
    getattr(sys, channel).write(answer[channel])
sys.exit(answer["status"])
"""


class Scripts:
    """A place where scripts run: a folder with the programs that they find.

    Attributes:
        folder: the working directory of the scripts.
        commands: the command lines of ``owf`` that the last script ran, without ``owf``; no dry runs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[list[str]] = []
        self.programs = folder / "programs"
        (self.programs / "bin").mkdir(parents=True)
        # the path of a socket must be short
        self._place = tempfile.TemporaryDirectory(prefix="owf")
        self._address = str(Path(self._place.name) / "socket")
        self.add("owf", CLIENT.format(python=sys.executable, address=self._address))

    def add(self, name: str, text: str) -> None:
        """Adds a program: the text of a script with its interpreter in the first line."""
        program = self.programs / "bin" / name
        program.write_text(text)
        program.chmod(0o755)

    def run(
        self, script: str, *arguments: str | Path, env: dict[str, str] | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``scripts/SCRIPT`` to its end, and every ``owf`` that it calls, one after another, in this process."""
        self.commands = []
        path = os.pathsep.join([str(self.programs / "bin"), os.defpath])
        environment = {**os.environ, "PATH": path, "OWF_VENV": str(self.programs), **(env or {})}
        command = ["bash", str(REPOSITORY / "scripts" / script), *map(str, arguments)]
        with socket.socket(socket.AF_UNIX) as server, open(self.folder / "output.txt", "w+b") as output:
            Path(self._address).unlink(missing_ok=True)
            server.bind(self._address)
            server.listen()
            server.settimeout(0.05)
            errors = self.folder / "errors.txt"
            with open(errors, "w+b") as error_file:
                process = subprocess.Popen(
                    command, cwd=self.folder, env=environment, stdout=output, stderr=error_file, start_new_session=True
                )
                end = time.monotonic() + timeout
                while process.poll() is None:
                    if time.monotonic() > end:
                        os.killpg(process.pid, signal.SIGKILL)
                        raise TimeoutError(shlex.join(command))
                    with contextlib.suppress(TimeoutError):
                        self._answer(server.accept()[0])
            output.seek(0)
            return subprocess.CompletedProcess(
                command, process.returncode, output.read().decode(), errors.read_bytes().decode()
            )

    def succeed(self, script: str, *arguments: str | Path, **how: object) -> subprocess.CompletedProcess[str]:
        """As ``run``, and checks that the status is 0."""
        done = self.run(script, *arguments, **how)  # type: ignore[arg-type]
        assert done.returncode == 0, f"{shlex.join(done.args)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(None)
        with connection, connection.makefile("rw", encoding="utf-8", errors="surrogateescape") as stream:
            folder, arguments = json.loads(stream.readline())
            if "--dry-run" not in arguments:
                self.commands.append(arguments)
            stream.write(json.dumps(owf(arguments, folder)) + "\n")


def owf(arguments: list[str], folder: str | Path) -> dict[str, object]:
    """Runs ``owf`` in this process, working in ``folder``; returns its status and what it printed."""
    vars(checkpoint_utils.save_checkpoint).pop("best", None)  # fairseq keeps the best score for the whole process
    before = os.getcwd()
    outputs = {name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for name in CHANNELS}
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(outputs["stdout"]), contextlib.redirect_stderr(outputs["stderr"]):
            try:
                status = cli.main(arguments)
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except Exception:
                traceback.print_exc()
                status = 1
    finally:
        os.chdir(before)
    printed = {name: output.buffer.getvalue().decode() for name, output in outputs.items()}  # type: ignore[attr-defined]
    return {"status": status, **printed}


CHANNELS = ("stdout", "stderr")


def lines_of(path: Path) -> list[str]:
    """The lines of a text file, with LF as the only end of a line."""
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def read_by_mtdata(command_line: str) -> argparse.Namespace:
    """What mtdata's own parser makes of a command line that a script built; it refuses what mtdata has not."""
    from mtdata.main import parse_args

    with mock.patch.object(sys, "argv", ["mtdata", *shlex.split(command_line)]):
        return parse_args()
