"""Which file of tested versions fits this machine's NVIDIA GPUs: the one place that decides it.

It needs nothing but Python, because `scripts/lib.sh` asks it before anything is installed. As a program it prints the
name of the file.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

CONSTRAINTS = "constraints.txt"
OLDER_GPUS_CONSTRAINTS = "constraints-cuda12.txt"

LAST_TORCH_FOR_V100 = "2.10.0"
"""The last torch whose wheel on PyPI runs on a V100 (sm_70): what `OLDER_GPUS_CONSTRAINTS` pins.

Read from the wheels for Linux: 2.10.0 is built with CUDA 12.8 for sm_70 and later; 2.11.0 and 2.13.0 are built with
CUDA 13.0, which no longer knows sm_70, for sm_75 and later.
"""

OLDEST_FOR_CUDA12, OLDEST_FOR_CUDA13 = (7, 0), (7, 5)
"""Compute capabilities: of a V100, and of the GPUs after it."""

QUESTION = ("nvidia-smi", "--query-gpu=compute_cap,name", "--format=csv,noheader")


@dataclass(frozen=True)
class Gpu:
    """A GPU: its name and its compute capability, (7, 0) for a V100."""

    name: str
    capability: tuple[int, int]

    @property
    def architecture(self) -> str:
        """As torch names what it was built for: ``sm_70``."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


def driver_gpus() -> tuple[Gpu, ...]:
    """The GPUs that NVIDIA's driver knows, whatever torch is installed; none where it can't be asked."""
    try:
        answer = subprocess.run(QUESTION, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if answer.returncode:
        return ()
    found = []
    for line in answer.stdout.splitlines():
        number, _, name = line.partition(",")
        major, _, minor = number.strip().partition(".")
        if major.isdigit() and minor.isdigit():  # an old driver says that it knows no `compute_cap`
            found.append(Gpu(name.strip(), (int(major), int(minor))))
    return tuple(found)


def needs_older_torch(gpus: Sequence[Gpu]) -> bool:
    """Whether there is a GPU that torch for CUDA 12 runs on and torch for CUDA 13 doesn't."""
    return any(OLDEST_FOR_CUDA12 <= gpu.capability < OLDEST_FOR_CUDA13 for gpu in gpus)


def constraints(gpus: Sequence[Gpu]) -> str:
    """The file of tested versions to install with."""
    return OLDER_GPUS_CONSTRAINTS if needs_older_torch(gpus) else CONSTRAINTS


if __name__ == "__main__":
    print(constraints(driver_gpus()))
