"""The numbers of the JSON and of the tables, from measurements whose every value is known."""

import pytest

from owf_fairseq.checkpoints.model_facts import ModelFacts
from owf_fairseq.cost_model.cost import Workload, cost, shape_of_arch
from owf_fairseq.cost_model.device_profiles import DeviceProfile
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.speed.benchmark_models import Candidate
from owf_fairseq.speed.benchmark_names import Named
from owf_fairseq.speed.calibration import Calibration
from owf_fairseq.speed.measurement import OUT_OF_MEMORY, Measurement, SpeedSetting
from owf_fairseq.speed.report import Measured, as_data, benchmark_tables, models_table

OPTIONS = {"unpacked": [], "fp16": False, "beam": 5, "runs": 3, "threads": 1}
MACHINE = {"machine": {"device": "CPU"}}
FIRST = {"first": "first", "second": "first"}
SHAPE = shape_of_arch("owf_tiny", 100)
PROFILE = DeviceProfile("this machine", 1e9, 1e9, 1e9)


def make_candidate(name, models=1, arch="owf_tiny", configuration="Transformer"):
    shapes = (SHAPE,) * models
    layers, ffn_dims = {"encoder": 6, "decoder": 6}, {"encoder": 128, "decoder": 128}
    facts = ModelFacts(arch, configuration, (), 1000 * models, layers, ffn_dims)
    return Candidate(Named(name, name), (), facts, shapes, 1023, 1023, 100)


def make_setting(*sizes):
    batches = [[["a"] * 4] * size for size in sizes]
    return SpeedSetting(max(sizes), SearchOptions(), [batches] * 2)


def make_data(first, second, sizes=(2, 1), precisions=("float32", "float32"), **more):
    candidates = [make_candidate("first"), make_candidate("second", models=2)]
    measured = Measured(candidates, precisions, [make_setting(*sizes)], [[first, second]], FIRST, **more)
    return as_data(measured, MACHINE, OPTIONS)


def test_speeds_ratios_and_costs():
    first = Measurement([12] * 3, [1.0, 2.0, 4.0], [0.5, 0.25, 0.75])
    second = Measurement([12] * 3, [1.0, 1.0, 1.0], [0.1, 0.1, 0.1])
    data = make_data(
        first, second, peak_memory=[[3_000_000, None]], calibration=Calibration(PROFILE, 5, 2e9, "float32")
    )
    one, two = data["measurements"]
    assert one["tokens_per_s"] == {
        "mean": 7.0,
        "sd": pytest.approx(4.58, abs=0.01),
        "median": 6.0,
        "by_run": [12, 6, 3],
    }
    assert two["ratio"]["by_run"] == [1, 2, 4]
    assert one["time_to_first_token_ms"]["mean"] == 500
    # three sentences in two batches, and of 12 / 3 pieces each; an ensemble costs the sum of its models
    workload = Workload(1.5, 5, 4, 4)
    assert (one["batch_size"], one["batches"], one["target_length"], one["lengths"]) == (2, 2, 4, "text")
    assert one["flops_per_token"] == cost(SHAPE, workload).flops
    assert two["bytes_per_token"] == 2 * cost(SHAPE, workload).bytes
    assert one["roofline_tokens_per_s"] == PROFILE.tokens_per_s(SHAPE, workload)
    assert two["roofline_tokens_per_s"] == one["roofline_tokens_per_s"] / 2
    speeds = benchmark_tables(data)[1]
    assert speeds.rows[0][:6] == ["4/4", "2", "first", "7.0 ± 4.6", "1", "500.0 ± 250.0"]
    assert speeds.rows[1][4] == "2.000 ± 1.528"  # the median, and not the mean of 2.333
    assert [row[-1] for row in speeds.rows] == ["3.0", OUT_OF_MEMORY]
    assert "1.0 GFLOP/s and 1.0 GB/s allow" in speeds.notes[-1]


def test_speeds_without_the_first_model():
    data = make_data(Measurement([3], [1.0], [1.0], OUT_OF_MEMORY), Measurement([12], [2.0], [0.1]))
    first, second = data["measurements"]
    assert (first["failure"], first["tokens_per_s"], first["time_to_first_token_ms"]) == (OUT_OF_MEMORY, None, None)
    assert "flops_per_token" not in first
    assert (second["tokens_per_s"]["mean"], second["ratio"]) == (6.0, None)
    rows = benchmark_tables(data)[1].rows
    assert rows[0][3:] == [OUT_OF_MEMORY, "-", "-", "-", "-"]
    assert rows[1][3:5] == ["6.0", "-"]


@pytest.mark.parametrize(("precision", "share"), [("float16", 2), ("bfloat16", 2), ("int8_float32", 4)])
def test_bytes_are_those_of_the_precision(precision, share):
    measurements = [Measurement([12], [1.0], [1.0]) for _ in range(2)]
    calibration = Calibration(PROFILE, 5, 2e9, "float32")
    data = make_data(*measurements, precisions=("float32", precision), calibration=calibration)
    full, other = data["measurements"]
    workload = Workload(1.5, 5, 4, 4)
    assert other["bytes_per_token"] == 2 * cost(SHAPE, workload, precision).bytes  # it is an ensemble of two
    if precision == "int8_float32":  # activations and caches stay in float32
        assert 2 * full["bytes_per_token"] / share < other["bytes_per_token"] < 2 * full["bytes_per_token"]
    else:
        assert other["bytes_per_token"] == 2 * full["bytes_per_token"] / share
    assert other["flops_per_token"] == 2 * full["flops_per_token"]
    assert data["models"][1]["weights_mb"] == pytest.approx(0.008 / share)
    for entry in (full, other):  # 12 tokens a second, 1 GB/s
        assert entry["bandwidth_percent"] == pytest.approx(100 * 12 * entry["bytes_per_token"] / 1e9)
    assert "roofline_tokens_per_s" in full
    assert "roofline_tokens_per_s" not in other  # the machine was measured in another precision
    speeds = benchmark_tables(data)[1]
    assert speeds.header[-2:] == ["of the bandwidth, %", "roofline, tokens/s"]
    assert speeds.rows[1][-1] == "-"


def test_the_table_says_where_the_paper_has_no_name():
    named = [("a", "owf_tiny", "Transformer"), ("b", "owf_tiny", None), ("c", "transformer", None)]
    models = [make_candidate(name, arch=arch, configuration=one).as_json("float32") for name, arch, one in named]
    data = {"models": models, "settings": OPTIONS, **MACHINE}
    assert [row[2] for row in models_table(data).rows] == ["Transformer", "other", "plain fairseq"]
    assert "decoded by" not in models_table(data).header
    models[1] |= {"backend": "ctranslate2", "precision": "int8_float32"}
    assert [row[-1] for row in models_table(data).rows] == [
        "fairseq, float32",
        "ctranslate2, int8_float32",
        "fairseq, float32",
    ]
