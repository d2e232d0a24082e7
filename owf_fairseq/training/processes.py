"""How many processes train together, and how many batches each takes so that an update has as many tokens as ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TORCHRUN = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
SLURM = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")
"""What fairseq looks for in the environment (``fairseq.distributed.utils.infer_init_method``)."""


@dataclass(frozen=True)
class Launch:
    """How this process was started.

    Attributes:
        processes: that train together, one a GPU; 1 on a CPU.
        rank: of this process, or of the first of those that fairseq will start from it.
        launcher: torchrun, slurm, or empty: fairseq starts one process for each GPU of this machine itself.
    """

    processes: int
    rank: int
    launcher: str = ""


def find_launch(environment: Mapping[str, str], gpus: int) -> Launch:
    """Reads the environment as fairseq does.

    Args:
        environment: of this process.
        gpus: of this machine that may be used.
    """
    if all(name in environment for name in TORCHRUN):
        return Launch(int(environment["WORLD_SIZE"]), int(environment["RANK"]), "torchrun")
    if any(name in environment for name in SLURM):
        nodes = int(environment.get("SLURM_NNODES", 1))
        tasks = int(environment.get("SLURM_NTASKS_PER_NODE", int(environment.get("SLURM_NTASKS", nodes)) // nodes))
        if nodes * tasks > 1:
            # one task a node starts a process for each of its GPUs
            return Launch(
                nodes * (max(1, gpus) if tasks == 1 else tasks), int(environment.get("SLURM_PROCID", 0)), "slurm"
            )
    return Launch(max(1, gpus), 0)


@dataclass(frozen=True)
class Batch:
    """What one update is made of.

    Attributes:
        unit: tokens or sentences.
        size: most of them in one batch of one process (``--max-tokens`` or ``--batch-size``).
        wanted: in an update, of all processes together, as the config says.
    """

    unit: str
    size: int
    wanted: int

    def update_freq(self, processes: int) -> int:
        """Batches that each process takes for an update, to the nearest whole number: ``--update-freq``."""
        return max(1, round(self.wanted / (self.size * processes)))

    def describe(self, processes: int, update_freq: int) -> str:
        """One line on the size of an update."""
        total = self.size * processes * update_freq
        number = f"{processes} process{'es' if processes > 1 else ''}"
        config = f"; the config's: {self.wanted:,}" if total != self.wanted else ""
        return (
            f"an update has up to {total:,} {self.unit}: {self.size:,} a batch x {number} x --update-freq {update_freq}"
            + config
        )
