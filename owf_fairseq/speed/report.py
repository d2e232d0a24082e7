"""Measured speeds as JSON, and as the tables that are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from owf_fairseq.checkpoints.naming import configuration_label
from owf_fairseq.cost_model.cost import Workload, cost
from owf_fairseq.cost_model.speed_tables import TEXT, Entry, batch_size_table, mean_lengths
from owf_fairseq.decoding.backends import FAIRSEQ
from owf_fairseq.speed.benchmark_models import Candidate
from owf_fairseq.speed.calibration import Calibration
from owf_fairseq.speed.measurement import OUT_OF_MEMORY, Measurement, SpeedSetting, Spread
from owf_fairseq.tables import Report, number, numbers, with_deviation

Data = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """All that was measured.

    Attributes:
        candidates: the models; speeds are relative to the first.
        precisions: of each model's weights, see ``search.Backend``.
        settings: the rows.
        measurements: for each setting those of the models.
        peak_memory: for each setting bytes of the models, None where they ran out of memory; empty if not measured.
        calibration: of the machine, None if not measured.
    """

    candidates: Sequence[Candidate]
    precisions: Sequence[str]
    settings: Sequence[SpeedSetting]
    measurements: Sequence[Sequence[Measurement]]
    peak_memory: Sequence[Sequence[int | None]] = ()
    calibration: Calibration | None = None


def as_data(measured: Measured, machine: Data, options: Data) -> Data:
    """For JSON.

    Args:
        measured: what to report.
        machine: where, see ``installation.machine_facts``.
        options: of the command.
    """
    calibration = measured.calibration
    return {
        "kind": "benchmark",
        **machine,
        "settings": options,
        "calibration": None if calibration is None else asdict(calibration),
        "models": [
            candidate.as_json(precision)
            for candidate, precision in zip(measured.candidates, measured.precisions, strict=True)
        ],
        "measurements": [
            _entry(measured, row, model)
            for row in range(len(measured.settings))
            for model in range(len(measured.candidates))
        ],
    }


def _entry(measured: Measured, row: int, model: int) -> Data:
    """One model in one setting."""
    precision = measured.precisions[model]
    setting, measurement = measured.settings[row], measured.measurements[row][model]
    candidate = measured.candidates[model]
    batches = setting.batches[model]
    sentences = sum(map(len, batches))
    entry: Data = {
        "name": candidate.named.name,
        "batch_size": setting.batch_size,
        "batches": len(batches),
        "sentences": sentences,
        "lengths": TEXT if setting.lengths is None else "{}/{}".format(*setting.lengths),
        "source_length": setting.source_length(model),
        "target_length": None if setting.lengths is None else setting.lengths[1],
        "failure": measurement.failure,
        "tokens_per_s": _spread(measurement.tokens_per_s),
        "ratio": _spread(measurement.ratios(measured.measurements[row][0])),
        "time_to_first_token_ms": None,
    }
    if measurement.failure is None:
        entry["time_to_first_token_ms"] = _spread([1000 * seconds for seconds in measurement.first_token_seconds])
        entry["target_length"] = measurement.tokens[0] / sentences
        workload = Workload(
            sentences / len(batches), setting.options.beam, entry["source_length"], entry["target_length"]
        )
        costs = [cost(shape, workload, precision) for shape in candidate.shapes]
        entry["flops_per_token"] = sum(one.flops for one in costs)
        entry["bytes_per_token"] = sum(one.bytes for one in costs)
        if measured.calibration is not None:
            profile = measured.calibration.profile
            speed = entry["tokens_per_s"]["median"]
            entry["bandwidth_percent"] = 100 * speed * entry["bytes_per_token"] / profile.bandwidth
            if precision == measured.calibration.precision:
                seconds = sum(profile.seconds(shape, workload, precision == "float16") for shape in candidate.shapes)
                entry["roofline_tokens_per_s"] = workload.generated_tokens / seconds
    if measured.peak_memory:
        peak = measured.peak_memory[row][model]
        entry["peak_memory_mb"] = None if peak is None else peak / 1e6
    return entry


def _spread(values: Sequence[float]) -> Data | None:
    spread = Spread.of(values)
    return None if spread is None else {**asdict(spread), "by_run": list(values)}


def benchmark_tables(data: Data) -> list[Report]:
    """The models; their speeds; and, for several batch sizes, the table of the paper's appendix."""
    entries, names = data["measurements"], [model["name"] for model in data["models"]]
    found = [models_table(data), speeds_table(data)]
    if len({entry["batch_size"] for entry in entries}) > 1:
        note = f"± standard deviation. speed-up: over {names[0]}, median of the runs."
        found.append(batch_size_table(names, entries, _speed, _ratio, data, (note,)))
    return found


def _speed(entry: Entry) -> str:
    return entry["failure"] or spread_cell(entry["tokens_per_s"], 1)


def _ratio(entry: Entry) -> float | None:
    return entry["ratio"]["median"] if entry["ratio"] else None


def models_table(data: Data) -> Report:
    """What was measured."""
    backends = {model["backend"] for model in data["models"]}
    header = [
        *("model", "arch", "configuration", "enc. d_ff", "dec. d_ff", "parameters", "weights, MB"),
        *(["decoded by"] if backends != {FAIRSEQ} else []),
    ]
    rows = [
        [
            *(model["name"], model["arch"], configuration_label(model["configuration"], model["arch"])),
            *(numbers(model["ffn_dims"]["encoder"]), numbers(model["ffn_dims"]["decoder"])),
            *(number(model["parameters"]), number(model["weights_mb"], 1)),
            f"{model['backend']}, {model['precision']}" + (", shortlist" if model.get("shortlist") else ""),
        ][: len(header)]
        for model in data["models"]
    ]
    unpacked = data["settings"]["unpacked"]
    on_cpu = data["machine"]["device"] == "CPU"
    notes = (
        [f"matrices as fairseq leaves them: {', '.join(unpacked)}; packed: all others in fairseq"]
        if unpacked and on_cpu
        else []
    )
    return Report(header, rows, data, notes, words=(0, 1, 2, 7))


def speeds_table(data: Data) -> Report:
    """Every model in every setting."""
    entries = data["measurements"]
    first = data["models"][0]["name"]
    header = ["source/target", "batch", "model", "tokens/s", "ratio", "first token, ms", "GFLOP/token", "MB/token"]
    further = {
        "bandwidth_percent": "of the bandwidth, %",
        "roofline_tokens_per_s": "roofline, tokens/s",
        "peak_memory_mb": "peak memory, MB",
    }
    shown = [name for name in further if any(name in entry for entry in entries)]
    rows = []
    for entry in entries:
        cells = [mean_lengths(entry), str(entry["batch_size"]), entry["name"]]
        if entry["failure"] is not None:
            rows.append([*cells, entry["failure"], *["-"] * (4 + len(shown))])
            continue
        ratio = "1" if entry["name"] == first else spread_cell(entry["ratio"], 3, "median")
        cells += [spread_cell(entry["tokens_per_s"], 1), ratio]
        cells += [spread_cell(entry["time_to_first_token_ms"], 1)]
        cells += [f"{entry['flops_per_token'] / 1e9:,.3g}", number(entry["bytes_per_token"] / 1e6, 1)]
        rows.append([*cells, *(_or_failure(entry[name]) if name in entry else "-" for name in shown)])
    options = data["settings"]
    notes = [
        f"tokens/s: pieces of the best hypotheses, end-of-sentence symbols not counted, for a second of search: mean ± "
        f"standard deviation of {options['runs']} runs; loading and segmentation are not timed. Beam "
        f"{options['beam']}, {options['threads']} thread{'s' if options['threads'] > 1 else ''}, "
        f"{data['machine']['device']}.",
        f"ratio: speed relative to {first}'s, run by run: median ± standard deviation. The models translate every "
        "batch in turn.",
        "first token: until a search that ends after one decoder step is done. GFLOP and MB moved: of the cost model.",
    ]
    if data["calibration"] is not None:
        notes.append(_about_the_roofline(data["calibration"]))
    return Report([*header, *(further[name] for name in shown)], rows, data, notes, words=(0, 2))


def _about_the_roofline(calibration: Data) -> str:
    profile = calibration["profile"]
    return (
        f"roofline: what this machine's {profile['flops'] / 1e9:,.1f} GFLOP/s and {profile['bandwidth'] / 1e9:,.1f} "
        f"GB/s allow in {calibration['precision']}; torch's plain product of {calibration['rows']} rows reads weights "
        f"at {calibration['rows_bandwidth'] / 1e9:,.1f} GB/s. Of the bandwidth: MB/token times tokens/s."
    )


def spread_cell(spread: Mapping[str, Any] | None, decimals: int, of: str = "mean") -> str:
    """The mean or median of the runs with their deviation, as a cell; ``-`` for none."""
    return "-" if spread is None else with_deviation(spread[of], spread["sd"], decimals)


def _or_failure(value: float | None) -> str:
    return OUT_OF_MEMORY if value is None else number(value, 1)
