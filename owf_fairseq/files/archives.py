"""The zip archives that torch writes: whether all of their bytes are what was written."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

from owf_fairseq.errors import InputError

TORCHSCRIPT = "is a TorchScript archive (of torch.jit.save), which holds a program and not only weights"


def check_archive(file: Path, *, sums: bool) -> list[str]:
    """Reads an archive's directory and compares the sums of all that is in it.

    torch does not compare the sums that it writes: it would read a weight with a wrong bit without a word.

    Args:
        file: the archive.
        sums: False to read the directory only.

    Returns:
        The names of what is in it.

    Raises:
        InputError: it is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            damaged = archive.testzip() if sums else None
    except Exception as error:  # a wrong byte in a name, a flag or a size: zipfile raises what it stumbles over
        raise InputError(f"{file} is cut off or damaged ({str(error) or type(error).__name__})") from error
    if damaged is not None:
        raise InputError(f"{file} is damaged (the checksum of {damaged!r} is wrong)")
    return names


def is_torchscript(names: Iterable[str]) -> bool:
    """Whether an archive with these names is a model of torch.jit's; an archive of torch.save has no constants."""
    return any(name.rpartition("/")[2] == "constants.pkl" for name in names)
