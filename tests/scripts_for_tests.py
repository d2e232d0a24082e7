"""Runs the shell scripts with programs that only note how they are called; loads the Python scripts."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

from fairseq_for_tests import REPOSITORY

from owf_fairseq import cli

SHARED_DATA = REPOSITORY.parent / "shared" / "data"
"""Text for developers' tests, which is not part of the repository: tests that read it skip where it isn't there."""

NOTE = """#!/bin/bash
(IFS=$'\\t' && printf '%s\\n' "${0##*/}"$'\\t'"$*" >>"$RECORD")
[ "${0##*/}" != "${FAIL:-}" ]
"""


class Scripts:
    """Programs that the scripts find, in a folder, and where they run.

    Attributes:
        folder: the working directory of the scripts.
        run: the folder of the run that they are given; its name has a space.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "a run"
        self.record = folder / "record"
        (folder / "venv/bin").mkdir(parents=True)
        for name in ("owf", "python", "sacrebleu", "mtdata", "curl"):
            self.add(name, NOTE)

    def add(self, name: str, text: str) -> None:
        """Adds a program: the text of a script with its interpreter in the first line."""
        program = self.folder / "venv/bin" / name
        program.write_text(text)
        program.chmod(0o755)

    def pretend_installed(self, extras: str = "") -> None:
        """So that a script that installs the package, with these extras, takes it for done."""
        state = "cat pyproject.toml constraints*.txt | cksum"
        mark = subprocess.run(state, shell=True, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
        (self.folder / f"venv/.installed{extras and '-'}{extras}").write_text(f"{mark}1\n")

    def call(self, script: str, *words: str | Path, **env: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs ``scripts/SCRIPT`` to its end."""
        self.record.unlink(missing_ok=True)
        environment = {
            "PATH": os.defpath,
            "OWF_VENV": str(self.folder / "venv"),
            "RECORD": str(self.record),
            "RUN": str(self.run),
            **{name: str(value) for name, value in env.items()},
        }
        command = ["bash", str(REPOSITORY / "scripts" / script), *map(str, words)]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600)

    def commands(self, script: str, *words: str | Path, **env: str | Path) -> list[list[str]]:
        """The commands that a script runs, which succeeds."""
        done = self.call(script, *words, **env)
        assert done.returncode == 0, f"{shlex.join(done.args)}\n{done.stdout}\n{done.stderr}"
        return [line.split("\t") for line in self.record.read_text().splitlines()]


def parse(command: list[str]) -> argparse.Namespace:
    """What the real parser makes of a command: ``owf`` or a Python script of ours. Unknown flags are errors."""
    if command[0] == "owf":
        args, others = cli.make_parser().parse_known_args(command[1:])
        assert args.passes_flags or not others, others
        args.others = others
        return args
    if command[0] == "mtdata":
        from mtdata.main import parse_args

        with mock.patch.object(sys, "argv", command):
            return parse_args()
    raise ValueError(command)


def load_script(name: str) -> ModuleType:
    """A Python script as a module."""
    path = REPOSITORY / "scripts" / name
    spec = importlib.util.spec_from_file_location(f"script_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def lines_of(path: Path) -> list[str]:
    """The lines of a text file, with LF as the only end of a line."""
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
