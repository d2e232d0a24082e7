"""Output folders that appear only when they are complete, and that never replace what another hand put there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike, remove, write_lines
from owf_fairseq.files.outputs import unwritable_folder, writing

MANIFEST = ".owf.json"
"""Lists, in each output folder, the command that made it, the files that it wrote, and what it made them of."""


def check_output(path: PathLike, command: str, flag: str = "--output") -> list[str]:
    """Say what forbids `command` to write the folder `path`: nothing if it is missing, empty, or was made by `command`.

    A folder that the command made counts as the user's own as soon as another file is in it, for example a checkpoint.

    Args:
        path: the folder.
        command: that makes it.
        flag: names it on the command line.

    Returns:
        The problems, to be reported with the command's others; empty if the folder may be written.
    """
    folder = Path(path)
    if not os.path.lexists(folder):
        return _unmakeable(folder, flag)
    if folder.is_symlink() or not folder.is_dir():
        return [f"`{flag}` {folder} is not a folder: name a folder that doesn't exist yet"]
    present = _files(folder)
    if not present:
        return _unmakeable(folder, flag)
    own: set[str] = set()
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["command"] == command:
            own = {MANIFEST, *manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    foreign = sorted(present - own)
    if not foreign:
        return _unmakeable(folder, flag)
    return [
        f"`{flag}` {folder} holds files that `{command}` didn't make ({_some(foreign)}): name another folder, or "
        "remove it"
    ]


@contextmanager
def output_folder(
    path: PathLike, command: str, record: Mapping[str, Any] | None = None, flag: str = "--output"
) -> Iterator[Path]:
    """Yield an empty temporary folder, and make it the folder `path` when the block ends well.

    What `command` itself wrote there before is replaced; when the block raises, it is untouched.

    Args:
        path: the folder.
        command: that makes it.
        record: what its manifest says beside the command and the files (see `owf_fairseq.files.job`).
        flag: names it on the command line.

    Raises:
        InputError: the folder holds something that `command` didn't make (see `check_output`).
    """
    problems = check_output(path, command, flag)
    if problems:
        raise InputError(problems)
    final = Path(os.path.abspath(path))
    temporary = final.parent / f".{final.name}.{os.getpid()}.tmp"
    replaced = final.parent / f".{final.name}.{os.getpid()}.old"
    with writing(flag, path):
        final.parent.mkdir(parents=True, exist_ok=True)
        remove(temporary)
        temporary.mkdir()
    try:
        yield temporary
        manifest = {**(record or {}), "command": command, "files": sorted(_files(temporary))}
        with writing(flag, path):
            write_lines(temporary / MANIFEST, json.dumps(manifest, indent=1).split("\n"))
            # A folder can't be renamed onto one that isn't empty.
            if final.exists():
                os.replace(final, replaced)
            os.replace(temporary, final)
    except BaseException:
        remove(temporary)
        if replaced.exists() and not final.exists():
            os.replace(replaced, final)
        raise
    remove(replaced)


def _unmakeable(folder: Path, flag: str) -> list[str]:
    parent = unwritable_folder(folder)
    return [f"`{flag}` {folder} can't be made: {parent} is not a folder that can be written to"] if parent else []


def _files(folder: Path) -> set[str]:
    return {found.relative_to(folder).as_posix() for found in folder.rglob("*") if not found.is_dir()}


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
