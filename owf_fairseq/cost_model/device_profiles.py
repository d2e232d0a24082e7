"""From the cost model to seconds: what a device can compute and move, and what it needs beside that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from owf_fairseq.cost_model.cost import (
    CROSS_ATTENTION,
    DECODER_ATTENTION,
    DECODER_FFN,
    ENCODER_ATTENTION,
    ENCODER_FFN,
    ModelShape,
    Operation,
    Workload,
    source_operations,
    step_operations,
)
from owf_fairseq.errors import InputError

LARGEST_BATCH = 65_536


@dataclass(frozen=True)
class DeviceProfile:
    """A device as the roofline model sees it (Williams, Waterman and Patterson, 2009).

    A sublayer takes the longer of two times, that for its FLOPs and that for its bytes, and an overhead, which stands
    for the program that starts it: Python, fairseq and the launching of kernels.

    Attributes:
        name: of the profile.
        flops, half_flops: FLOPs a second in float32 and in float16.
        bandwidth: bytes a second from and to memory.
        efficiency: the share of ``flops`` that matrix products reach.
        attention_overhead, ffn_overhead: seconds for each such sublayer that is run.
        step_overhead: seconds for each decoder step, beside its sublayers.
        source: where the numbers are from.
    """

    name: str
    flops: float
    half_flops: float
    bandwidth: float
    efficiency: float = 1.0
    attention_overhead: float = 0.0
    ffn_overhead: float = 0.0
    step_overhead: float = 0.0
    source: str = ""

    def _seconds_of(self, operations: Sequence[Operation], fp16: bool) -> float:
        flops = self.efficiency * (self.half_flops if fp16 else self.flops)
        overheads = {
            ENCODER_ATTENTION: self.attention_overhead,
            DECODER_ATTENTION: self.attention_overhead,
            CROSS_ATTENTION: self.attention_overhead,
            ENCODER_FFN: self.ffn_overhead,
            DECODER_FFN: self.ffn_overhead,
        }
        return sum(
            max(operation.flops / flops, operation.bytes("float16" if fp16 else "float32") / self.bandwidth)
            + overheads.get(operation.part, 0.0)
            for operation in operations
        )

    def seconds(self, shape: ModelShape, workload: Workload, fp16: bool = False) -> float:
        """The time of a search for a batch."""
        source = self._seconds_of(source_operations(shape, workload), fp16)
        step = self._seconds_of(step_operations(shape, workload), fp16) + self.step_overhead
        return source + workload.steps * step

    def tokens_per_s(self, shape: ModelShape, workload: Workload, fp16: bool = False) -> float:
        """Pieces of the best hypotheses for a second of search."""
        return workload.generated_tokens / self.seconds(shape, workload, fp16)

    def break_even(self, baseline: ModelShape, shape: ModelShape, workload: Workload, fp16: bool = False) -> int | None:
        """The smallest batch size at which a model is not faster than the baseline.

        Args:
            baseline, shape: of the two models.
            workload: its batch size is not looked at.

        Returns:
            1 if the model is never ahead; None if it still is at ``LARGEST_BATCH``.
        """

        def is_ahead(batch_size: int) -> bool:
            at = replace(workload, batch_size=batch_size)
            return self.seconds(shape, at, fp16) < self.seconds(baseline, at, fp16)

        behind = 1
        while is_ahead(behind):
            behind *= 2
            if behind > LARGEST_BATCH:
                return None
        ahead = behind // 2
        while behind - ahead > 1:
            middle = (ahead + behind) // 2
            ahead, behind = (middle, behind) if is_ahead(middle) else (ahead, middle)
        return behind


_DATA_SHEET = "NVIDIA's data sheet of the V100 SXM2: 15.7 TFLOP/s in float32, 125 in float16 (tensor cores), 900 GB/s"

V100_ROOFLINE = DeviceProfile("v100-roofline", 15.7e12, 125e12, 900e9, source=_DATA_SHEET)

V100 = replace(
    V100_ROOFLINE,
    name="v100",
    efficiency=0.4406,
    attention_overhead=443.5e-6,
    ffn_overhead=205.3e-6,
    step_overhead=1.344e-3,
    source=f"{_DATA_SHEET}; efficiency and overheads fitted to four speeds of the paper, see docs/speed/README.md",
)

CPU = DeviceProfile(
    "cpu",
    85e9,
    85e9,
    15e9,
    source="one thread of an AMD EPYC with packed matrices: what products of 27 rows compute and of 5 rows read, see "
    "docs/speed/products.json",
)

PROFILES = {profile.name: profile for profile in (V100, V100_ROOFLINE, CPU)}


def choose_profile(
    name: str | None, peak_gflops: float | None, bandwidth_gbs: float | None, calibrate: bool
) -> DeviceProfile | None:
    """The device that a prediction is for; by default the paper's.

    Args:
        name: of a profile.
        peak_gflops, bandwidth_gbs: of another device: GFLOP/s and GB/s.
        calibrate: whether it is this machine.

    Returns:
        None if it is still to be measured.

    Raises:
        InputError: there is no such profile or device, or several are asked for.
    """
    numbers = {"--peak-gflops": peak_gflops, "--bandwidth-gbs": bandwidth_gbs}
    given = {flag: value for flag, value in numbers.items() if value is not None}
    ways = [flag for flag, is_given in (("--profile", name is not None), ("--calibrate", calibrate)) if is_given]
    ways += [" ".join(given)] if given else []
    problems = [
        f"`{flag}` must be a number above 0, but is {value:g}"
        for flag, value in given.items()
        if not 0 < value < math.inf
    ]
    if len(ways) > 1:
        problems.append(f"`{'`, `'.join(ways)}` each choose a device: give only one of them")
    if len(given) == 1:
        problems.append("`--peak-gflops` and `--bandwidth-gbs` describe a device together: give both")
    if name is not None and name not in PROFILES:
        problems.append(f"`--profile` must be one of {', '.join(PROFILES)}, but is '{name}'")
    if problems:
        raise InputError(problems)
    if peak_gflops is not None and bandwidth_gbs is not None:
        flops = 1e9 * peak_gflops
        return DeviceProfile("this device", flops, flops, 1e9 * bandwidth_gbs, source="as given")
    return None if calibrate else V100 if name is None else PROFILES[name]
