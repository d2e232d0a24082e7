"""One process at a time: a lock on a file, which ends with the process that holds it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from owf_fairseq.errors import InputError


@contextmanager
def locked(path: Path, problem: str) -> Iterator[None]:
    """Holds a lock during the block.

    The file stays: to remove it would let two processes hold locks on two files of one name. A file system without
    locks lets everybody in.

    Args:
        path: of the file, which is made.
        problem: what to say if another process holds it.

    Raises:
        InputError: another process holds it.
    """
    with open(path, "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(problem) from error
        except OSError:
            pass
        yield
