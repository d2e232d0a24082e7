"""What this machine computes and reads, measured on the spot: the roofs of its roofline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from owf_fairseq.cost_model.device_profiles import DeviceProfile

_REPETITIONS = 5
_SIDE = 2048
_MATRICES = 64
"""Of side 2048: 1 GB in float32, more than caches hold."""


@dataclass(frozen=True)
class Calibration:
    """A measured machine.

    Attributes:
        profile: its roofs, without overheads.
        rows: of a matrix product as a decoder step has it.
        rows_bandwidth: bytes of weights a second that such a product reads: below ``profile.bandwidth`` by what the
            library's product loses with so few rows.
        precision: that it computed in.
    """

    profile: DeviceProfile
    rows: int
    rows_bandwidth: float
    precision: str


def calibrate(device: torch.device, fp16: bool, rows: int) -> Calibration:
    """Measures a large square matrix product, the sum of a large vector, and a product with few rows.

    Each is the best of several times: what the machine can do when nothing else runs. It runs on as many threads as
    torch is set to.

    Args:
        device: a CPU or a GPU.
        fp16: whether in half precision.
        rows: of the product with few rows, the beam size times the batch size.
    """
    dtype = torch.float16 if fp16 else torch.float32
    on_gpu = device.type == "cuda"
    side = 8192 if on_gpu else 1024
    square = torch.randn(side, side, device=device).to(dtype)
    matrices = torch.randn(_MATRICES, _SIDE, _SIDE, device=device).to(dtype)
    few = torch.randn(rows, _SIDE, device=device).to(dtype)

    def skinny() -> None:
        for matrix in matrices:
            few @ matrix.t()

    flops = 2 * side**3 / _best_seconds(lambda: square @ square, device)
    size = matrices.numel() * matrices.element_size()
    bandwidth = size / _best_seconds(matrices.sum, device)
    profile = DeviceProfile("this machine", flops, flops, bandwidth, source="measured by --calibrate")
    return Calibration(profile, rows, size / _best_seconds(skinny, device), "float16" if fp16 else "float32")


@torch.inference_mode()
def _best_seconds(action: Callable[[], object], device: torch.device) -> float:
    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    best = float("inf")
    action()
    for _ in range(_REPETITIONS):
        wait()
        begun = time.perf_counter()
        action()
        wait()
        best = min(best, time.perf_counter() - begun)
    return best
