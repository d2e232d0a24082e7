"""From FLOPs and bytes to seconds, and to the batch size at which an advantage ends."""

import json
from dataclasses import replace

import pytest
from fairseq_for_tests import REPOSITORY

from owf_fairseq.cost_model import device_profiles
from owf_fairseq.cost_model.cost import (
    LayerShape,
    ModelShape,
    Workload,
    shape_of_arch,
    source_operations,
    step_operations,
)
from owf_fairseq.cost_model.device_profiles import CPU, PROFILES, V100, V100_ROOFLINE, DeviceProfile
from owf_fairseq.speed import calibration

BIG, NO_DEC, WIDE = (shape_of_arch(arch, 50_408) for arch in ("owf_big", "owf_big_no_dec", "owf_big_one_wide_ffn"))
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
HERE = DeviceProfile("a CPU", 70e9, 70e9, 12e9)


def speed_ups(profile, shape=WIDE, **workload):
    at = [Workload(batch_size, **workload) for batch_size in BATCH_SIZES]
    return [profile.tokens_per_s(shape, one) / profile.tokens_per_s(BIG, one) for one in at]


def test_seconds_by_hand():
    """A device so slow in FLOPs that they alone count, and one so slow in bytes."""
    shape, workload = ModelShape(8, 8, (LayerShape(16),) * 2, (LayerShape(0), LayerShape(16)), 50), Workload(3, 2, 4, 5)
    source, step = source_operations(shape, workload), step_operations(shape, workload)
    flops = sum(operation.flops for operation in source) + 6 * sum(operation.flops for operation in step)
    moved = sum(operation.bytes("float32") for operation in source) + 6 * sum(
        operation.bytes("float32") for operation in step
    )
    assert DeviceProfile("x", 2.0, 1.0, 1e30).seconds(shape, workload) == pytest.approx(flops / 2)
    assert DeviceProfile("x", 2.0, 1.0, 1e30).seconds(shape, workload, fp16=True) == pytest.approx(flops)
    assert DeviceProfile("x", 2.0, 2.0, 1e30, efficiency=0.5).seconds(shape, workload) == pytest.approx(flops)
    assert DeviceProfile("x", 1e30, 1e30, 2.0).seconds(shape, workload) == pytest.approx(moved / 2)
    assert DeviceProfile("x", 1e30, 1e30, 2.0).seconds(shape, workload, fp16=True) == pytest.approx(moved / 4)
    fast = DeviceProfile("x", 1e30, 1e30, 1e30)
    # 2 encoder layers once, 2 decoder layers with two attentions each and one FFN in each of 6 steps
    assert replace(fast, attention_overhead=1).seconds(shape, workload) == pytest.approx(2 + 6 * 4)
    assert replace(fast, ffn_overhead=1).seconds(shape, workload) == pytest.approx(2 + 6 * 1)
    assert replace(fast, step_overhead=1).seconds(shape, workload) == pytest.approx(6)
    assert replace(fast, step_overhead=1).tokens_per_s(shape, workload) == pytest.approx(15 / 6)


@pytest.mark.parametrize("profile", [*PROFILES.values(), HERE], ids=lambda profile: profile.name)
@pytest.mark.parametrize(("source", "target"), [(12, 12), (26, 30), (50, 60)])
def test_the_wide_encoder_ffn_pays_less_with_every_batch_size(profile, source, target):
    ratios = speed_ups(profile, source_length=source, target_length=target)
    assert all(larger <= smaller + 1e-9 for smaller, larger in zip(ratios, ratios[1:], strict=False))


@pytest.mark.parametrize("profile", [V100, V100_ROOFLINE], ids=lambda profile: profile.name)
def test_the_papers_signs(profile):
    """One Wide FFN is ahead at batch size 1 and behind at 512, as in the paper; NoDec is ahead everywhere."""
    ratios = speed_ups(profile)
    assert 1.15 < ratios[0] < 1.3
    assert 0.75 < ratios[-1] < 0.85
    assert all(ratio > 1.1 for ratio in speed_ups(profile, NO_DEC))


def test_break_even_is_the_first_batch_size_that_is_behind():
    for profile in (V100, V100_ROOFLINE):
        end = profile.break_even(BIG, WIDE, Workload())
        at = [Workload(end - 1), Workload(end)]
        ahead = [profile.seconds(WIDE, one) < profile.seconds(BIG, one) for one in at]
        assert ahead == [True, False]
    assert 16 < V100.break_even(BIG, WIDE, Workload()) < 32  # where the paper's table changes its sign
    assert V100.break_even(BIG, NO_DEC, Workload()) is None
    assert V100.break_even(NO_DEC, BIG, Workload()) == 1
    assert V100.break_even(BIG, BIG, Workload()) == 1


def test_break_even_moves_with_the_work():
    """Long targets pay for the encoder, long sources cost it, and half precision moves it to larger batches."""
    ends = [V100.break_even(BIG, WIDE, Workload(source_length=26, target_length=target)) for target in (10, 20, 30)]
    assert ends == sorted(ends)
    assert ends[0] < ends[-1]
    ends = [V100.break_even(BIG, WIDE, Workload(source_length=source, target_length=30)) for source in (20, 26, 60)]
    assert ends[0] > ends[1] > ends[2]
    assert V100.break_even(BIG, WIDE, Workload(), fp16=True) > V100.break_even(BIG, WIDE, Workload())


def test_one_end_among_many(monkeypatch):
    """The search finds every end there is, not only powers of two."""

    class Ends(DeviceProfile):
        def seconds(self, shape, workload, fp16=False):
            return workload.batch_size if shape is WIDE else self.flops

    for end in (1, 2, 3, 7, 8, 9, 1000, 65_536):
        assert Ends("x", end, 1, 1).break_even(BIG, WIDE, Workload()) == end
    assert Ends("x", device_profiles.LARGEST_BATCH + 1, 1, 1).break_even(BIG, WIDE, Workload()) is None


def test_calibration_measures_this_machine(monkeypatch):
    import torch

    monkeypatch.setattr(calibration, "_MATRICES", 4)
    found = calibration.calibrate(torch.device("cpu"), fp16=False, rows=5)
    assert found.rows == 5
    assert 1e9 < found.profile.flops < 1e14
    assert 1e8 < found.profile.bandwidth < 1e12
    assert 1e7 < found.rows_bandwidth < 1e12
    assert found.profile.efficiency == 1
    assert found.profile.step_overhead == found.profile.ffn_overhead == found.profile.attention_overhead == 0
    monkeypatch.setattr(calibration, "_best_seconds", lambda action, device: 2.0)
    in_two_seconds = calibration.calibrate(torch.device("cpu"), fp16=False, rows=5)
    assert in_two_seconds.profile.flops == 1024**3
    assert in_two_seconds.profile.bandwidth == in_two_seconds.rows_bandwidth == 4 * 2048**2 * 4 / 2


@pytest.mark.parametrize("arch", ["owf_big", "owf_big_no_dec", "owf_big_one_wide_ffn"])
def test_the_profile_of_a_cpu_predicts_what_was_measured(arch):
    """In the mean of a sentence, decoded with packed matrices; nothing was fitted to these speeds."""
    measured = json.loads((REPOSITORY / "docs/speed/cpu.json").read_text(encoding="utf-8"))
    for entry in measured["measurements"]:
        if (entry["name"], entry["lengths"]) == (arch, "26/30"):
            predicted = CPU.tokens_per_s(shape_of_arch(arch, 32_000), Workload(1, 5, 26, 30))
            assert predicted == pytest.approx(entry["tokens_per_s"]["mean"], rel=0.12)
            break
    else:
        raise AssertionError(arch)


def test_the_profile_of_a_cpu_is_its_source():
    """What products with few rows reach, of the matrices of a layer."""
    rows = json.loads((REPOSITORY / "docs/speed/products.json").read_text(encoding="utf-8"))["rows"]
    layer = [row for row in rows if row["matrix"] in ("1024 x 1024", "4096 x 1024")]
    read = [1e9 * float(row["packed, GB/s"]) for row in layer if row["rows"] == "5"]
    computed = [1e9 * float(row["packed, GFLOP/s"]) for row in layer if row["rows"] == "27"]
    assert pytest.approx(sum(read) / len(read), rel=0.02) == CPU.bandwidth
    assert pytest.approx(sum(computed) / len(computed), rel=0.02) == CPU.flops
