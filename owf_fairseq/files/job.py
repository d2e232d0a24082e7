"""A command whose outputs say how they were made, so that the same command need not make them again.

Beside an output file there is a hidden record, ``.NAME.owf.json``: the command, its settings, and the size and time of
the files that it read. An output folder has the same in its manifest. Paths in it are relative to the output, so that
a run's folder may move.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from owf_fairseq.files.folders import MANIFEST, check_output
from owf_fairseq.files.lines import PathLike, write_lines
from owf_fairseq.files.outputs import check_output_file, replaced_inputs

Stamp = list[int]
"""Size and time of a file, which tell whether it has changed."""


class OutputFile(NamedTuple):
    """A file to write.

    Attributes:
        flag: names it on the command line.
        path: of the file; None if the flag was not given.
        kind: of the JSON that the command writes there, see ``check_output_file``.
    """

    flag: str
    path: PathLike | None
    kind: str | None = None


class Job:
    """What a command was asked to do.

    Args:
        command: as ``owf translate``.
        settings: by flag, all that the result depends on, files aside: what JSON can hold.
        inputs: by flag, the files and folders that are read, as typed.
        files: that are written.
        folder: that is made, the flag ``--output``; None for none.
        overwrite: whether ``--overwrite`` was given: the work is done in any case.
    """

    def __init__(
        self,
        command: str,
        settings: Mapping[str, Any],
        inputs: Mapping[str, Sequence[PathLike]],
        files: Sequence[OutputFile] = (),
        folder: PathLike | None = None,
        overwrite: bool = False,
    ) -> None:
        self.command = command
        self.settings = settings
        self.inputs = {flag: [os.fspath(path) for path in paths] for flag, paths in inputs.items()}
        self.files = [file for file in files if file.path is not None]
        self.folder = folder
        self.overwrite = overwrite
        self._stamps: dict[str, Stamp] = {}
        self._typed: dict[str, PathLike] = {}
        self.repeatable = True
        """Whether all that is read will be there again, as what comes through a pipe is not."""
        self.reads(path for paths in self.inputs.values() for path in paths)

    def reads(self, paths: Iterable[PathLike]) -> None:
        """Adds files that are read, as they are now. What is in a folder is to be named file by file."""
        for path in paths:
            try:
                found = os.stat(path)
            except OSError:
                continue  # whoever reads it will say so
            if stat.S_ISREG(found.st_mode):
                self._stamps.setdefault(os.path.abspath(path), [found.st_size, found.st_mtime_ns])
                self._typed.setdefault(os.path.abspath(path), path)  # as the user knows it
            elif not stat.S_ISDIR(found.st_mode):
                self.repeatable = False  # a pipe gives something else each time

    def is_known(self) -> bool:
        """Whether every output says how it was made."""
        return all(_read(path) is not None for path in self._outputs())

    def is_done(self, say: bool = True) -> bool:
        """Whether the same command has made all of it, and of the same inputs; then it says so."""
        if self.overwrite or not self.repeatable or not self._outputs():
            return False
        if not all(self._is_made(path) for path in self._outputs()):
            return False
        names = " and ".join(os.fspath(path) for path in self._outputs())
        if say:
            print(f"{self.command}: {names}: made before with the same settings and inputs", file=sys.stderr)
        return True

    def problems(self) -> list[str]:
        """Says what forbids to write the outputs, to be reported with the command's other problems."""
        problems = []
        for flag, path, kind in self.files:
            assert path is not None
            different = self._different(path)
            if different and not self.overwrite:
                problems.append(self._refusal(flag, path, different))
            else:
                ours = self.overwrite or different == []
                problems += check_output_file(flag, path, ours, kind=kind, inputs=list(self._typed.values()))
        if self.folder is not None:
            different = self._different(self.folder)
            found = check_output(self.folder, self.command)
            found += replaced_inputs("--output", self.folder, list(self._typed.values()))
            if not found and different and not self.overwrite:
                found.append(self._refusal("--output", self.folder, different))
            problems += found
        return problems + self._mixed()

    def note(self) -> None:
        """Leaves the records of the files that were made. (A folder gets its own, see ``record``, when it is made.)"""
        for _, path, _ in self.files:
            assert path is not None
            if not os.path.isfile(path):
                continue
            place = _record_of(path)
            try:
                place.unlink(missing_ok=True)
                if self.repeatable:
                    found = os.stat(path)
                    record = {**self.record(path), "output": [found.st_size, found.st_mtime_ns]}
                    write_lines(place, json.dumps(record, indent=1).split("\n"))
            except OSError:
                pass  # without a record the work would be done again: no reason to fail now

    def record(self, output: PathLike) -> dict[str, Any]:
        """What the record of an output says."""
        if not self.repeatable:
            return {}
        inputs = {_relative(path, output): found for path, found in self._stamps.items()}
        return {"command": self.command, "settings": self._settings(output), "inputs": inputs}

    def result(self) -> Any:
        """What the folder's manifest says under ``result``."""
        assert self.folder is not None
        return (_read(self.folder) or {}).get("result")

    def _outputs(self) -> list[PathLike]:
        paths = [file.path for file in self.files if file.path is not None]
        return paths if self.folder is None else [self.folder, *paths]

    def _settings(self, output: PathLike) -> dict[str, Any]:
        """With the inputs by their places, as JSON gives them back."""
        inputs = {
            flag: [_relative(path, output) if os.path.exists(path) else path for path in paths]
            for flag, paths in self.inputs.items()
        }
        found: dict[str, Any] = json.loads(json.dumps({**self.settings, **inputs}))
        return found

    def _different(self, output: PathLike) -> list[str] | None:
        """The settings that an output was made with, where they are not these; None if this command didn't make it."""
        record = _read(output)
        if record is None or record["command"] != self.command or not self._untouched(output, record):
            return None
        before, now = record["settings"], self._settings(output)
        return [
            f"`{name}` {_shown(before.get(name))}, now {_shown(now.get(name))}"
            for name in changed_settings(before, now)
        ]

    def _is_made(self, output: PathLike) -> bool:
        if self._different(output) != []:
            return False
        inputs = (_read(output) or {})["inputs"]
        folder = os.path.dirname(os.path.abspath(output))
        return all(_stamp(os.path.join(folder, path)) == found for path, found in inputs.items())

    def _untouched(self, output: PathLike, record: Mapping[str, Any]) -> bool:
        """Whether it is as the command left it."""
        if os.path.isdir(output):
            return not check_output(output, self.command)
        return bool(_stamp(output) == record.get("output"))

    def _refusal(self, flag: str, path: PathLike, different: Sequence[str]) -> str:
        what = "folder" if os.path.isdir(path) else "file"
        return (
            f"`{flag}` {os.fspath(path)} was made with other settings ({'; '.join(different)}): name another {what}, "
            "or replace it with `--overwrite`"
        )

    def _mixed(self) -> list[str]:
        """Outputs that are one file, or one in the other."""
        problems: list[str] = []
        seen: dict[str, str] = {}
        for flag, path, _ in self.files:
            assert path is not None
            real = os.path.realpath(path)
            named = f"`{flag}` {os.fspath(path)}"
            if real in seen and (os.path.isfile(real) or not os.path.exists(real)):
                problems.append(f"{seen[real]} and {named} are one file: each output needs a file of its own")
            seen[real] = named
            if self.folder is not None and Path(os.path.realpath(self.folder)) in Path(real).parents:
                problems.append(f"{named} is in the folder of `--output`, which is replaced as a whole")
        return problems


def files_in(folder: PathLike) -> list[Path]:
    """The files that lie in a folder itself."""
    return [path for path in sorted(Path(folder).iterdir()) if path.is_file()]


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of the settings that differ."""
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]


def stamps(paths: Iterable[PathLike]) -> dict[str, Stamp | None]:
    """What tells whether files have changed; None for one that is not there."""
    return {os.path.abspath(path): _stamp(path) for path in paths}


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "not given"
    if not isinstance(value, list):
        return str(value)
    return " ".join(map(str, value[:5])) + (f" ... ({len(value)})" if len(value) > 5 else "")


def _record_of(output: PathLike) -> Path:
    if os.path.isdir(output):
        return Path(output) / MANIFEST
    path = Path(os.path.abspath(output))
    return path.with_name(f".{path.name}.owf.json")


def _read(output: PathLike) -> dict[str, Any] | None:
    """The record of an output; None if there is none."""
    try:
        record = json.loads(_record_of(output).read_text(encoding="utf-8"))
        parts = [record["command"], record["settings"], record["inputs"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if [type(part) for part in parts] == [str, dict, dict] else None


def _stamp(path: PathLike) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]


def _relative(path: PathLike, output: PathLike) -> str:
    return os.path.relpath(os.path.abspath(path), os.path.dirname(os.path.abspath(output)))
