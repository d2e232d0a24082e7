"""Measured speeds as JSON, and as the tables that are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from owf_fairseq.baselines import compared_with, described
from owf_fairseq.checkpoints.naming import configuration_label
from owf_fairseq.cost_model.cost import Workload, cost
from owf_fairseq.cost_model.speed_tables import TEXT, Entry, batch_size_table, mean_lengths
from owf_fairseq.decoding.backends import FAIRSEQ
from owf_fairseq.speed.benchmark_models import Candidate
from owf_fairseq.speed.calibration import Calibration
from owf_fairseq.speed.measurement import OUT_OF_MEMORY, Measurement, SpeedSetting, Spread
from owf_fairseq.speed.serving import Served
from owf_fairseq.tables import Report, joined_numbers, number, with_deviation

Data = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """All that was measured.

    Attributes:
        candidates: the models.
        precisions: of each model's weights, see ``search.Backend``.
        settings: the rows.
        measurements: for each setting those of the models.
        baselines: what their speeds are relative to, see ``baselines.Baselines``.
        peak_memory: for each setting bytes of the models, None where they ran out of memory; empty if not measured.
        calibration: of the machine, None if not measured.
        served: for each number of clients what the models do; empty if not measured.
    """

    candidates: Sequence[Candidate]
    precisions: Sequence[str]
    settings: Sequence[SpeedSetting]
    measurements: Sequence[Sequence[Measurement]]
    baselines: Mapping[str, str]
    peak_memory: Sequence[Sequence[int | None]] = ()
    calibration: Calibration | None = None
    served: Sequence[Sequence[Served]] = ()


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
            {
                **candidate.as_json(precision),
                "baseline": compared_with(measured.baselines, candidate.named.name),
            }
            for candidate, precision in zip(measured.candidates, measured.precisions, strict=True)
        ],
        "measurements": [
            _entry(measured, row, model)
            for row in range(len(measured.settings))
            for model in range(len(measured.candidates))
        ],
        "clients": [
            _served(measured, row, model)
            for row in range(len(measured.served))
            for model in range(len(measured.candidates))
        ],
    }


def _served(measured: Measured, row: int, model: int) -> Data:
    """One model with so many clients."""
    served, names = measured.served[row][model], [one.named.name for one in measured.candidates]
    baseline = measured.served[row][names.index(measured.baselines[names[model]])]
    rates = served.translations_per_s
    return {
        "name": names[model],
        "clients": served.clients,
        "sentences": served.sentences,
        "translations_per_s": _spread(rates),
        "ratio": _spread([own / other for own, other in zip(rates, baseline.translations_per_s, strict=True)]),
        "latency_ms": {"median": 1000 * served.latency(50), "p95": 1000 * served.latency(95)},
    }


def _entry(measured: Measured, row: int, model: int) -> Data:
    """One model in one setting."""
    precision = measured.precisions[model]
    setting, measurement = measured.settings[row], measured.measurements[row][model]
    candidate = measured.candidates[model]
    names = [one.named.name for one in measured.candidates]
    baseline = measured.measurements[row][names.index(measured.baselines[candidate.named.name])]
    batches = setting.batches[model]
    sentences = sum(map(len, batches))
    entry: Data = {
        "name": candidate.named.name,
        "batch_size": setting.batch_size,
        "max_tokens": setting.max_tokens,
        "batches": len(batches),
        "sentences": sentences,
        "lengths": TEXT if setting.lengths is None else "{}/{}".format(*setting.lengths),
        "source_length": setting.source_length(model),
        "target_length": None if setting.lengths is None else setting.lengths[1],
        "failure": measurement.failure,
        "tokens_per_s": _spread(measurement.tokens_per_s),
        "words_per_s": None,
        "ratio": _spread(measurement.ratios(baseline)),
        "time_to_first_token_ms": None,
    }
    if measurement.failure is None:
        if setting.words is not None:
            entry["words_per_s"] = _spread([setting.words / seconds for seconds in measurement.seconds])
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
    """The models; their speeds; for several batch sizes the table of the paper's appendix; and what clients get."""
    entries, compared = data["measurements"], baselines_in(data)
    found = [models_table(data), speeds_table(data)]
    if len({entry["batch_size"] for entry in entries}) > 1:
        note = f"± standard deviation. speed-up: over {described(compared)}, median of the runs."
        found.append(batch_size_table(compared, entries, _speed, _ratio, data, (note,)))
    if data["clients"]:
        found.append(clients_table(data))
    return found


def clients_table(data: Data) -> Report:
    """Every model with every number of clients."""
    compared = baselines_in(data)
    header = ["clients", "model", "translations/s", "ratio", "latency, ms", "latency of 95 %, ms"]
    rows = [
        [
            *(str(entry["clients"]), entry["name"], spread_cell(entry["translations_per_s"], 1)),
            "1" if compared[entry["name"]] is None else spread_cell(entry["ratio"], 3, "median"),
            *(number(entry["latency_ms"][which], 1) for which in ("median", "p95")),
        ]
        for entry in data["clients"]
    ]
    notes = [
        "clients: each sends one sentence, waits for its translation, and sends the next, until all are translated. "
        "translations/s: mean ± standard deviation of the runs. latency: from request to translation, the wait for a "
        "free search included, of all runs: the median, and what 95 % do not exceed."
    ]
    return Report(header, rows, data, notes, words=(1,))


def _speed(entry: Entry) -> str:
    return entry["failure"] or spread_cell(entry["tokens_per_s"], 1)


def _ratio(entry: Entry) -> float | None:
    return entry["ratio"]["median"] if entry["ratio"] else None


def baselines_in(data: Data) -> dict[str, str | None]:
    """The baseline of every model in the JSON of a measurement, None for one that is itself a baseline."""
    return {model["name"]: model["baseline"] for model in data["models"]}


def models_table(data: Data) -> Report:
    """What was measured."""
    backends = {model["backend"] for model in data["models"]}
    header = [
        *("model", "arch", "configuration", "enc. d_ff", "dec. d_ff", "parameters", "weights, MB"),
        *(["folder, MB", "decoded by"] if backends != {FAIRSEQ} else []),
    ]
    rows = [
        [
            *(model["name"], model["arch"], configuration_label(model["configuration"], model["arch"])),
            *(joined_numbers(model["ffn_dims"]["encoder"]), joined_numbers(model["ffn_dims"]["decoder"])),
            *(number(model["parameters"]), number(model["weights_mb"], 1), number(model.get("folder_mb"), 1)),
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
    return Report(header, rows, data, notes, words=(0, 1, 2, 8))


def speeds_table(data: Data) -> Report:
    """Every model in every setting."""
    entries, compared = data["measurements"], baselines_in(data)
    words = ["words/s"] if any(entry.get("words_per_s") for entry in entries) else []
    header = ["source/target", "batch", "model", "tokens/s", *words, "ratio", "first token, ms"]
    header += ["GFLOP/token", "MB/token"]
    further = {
        "bandwidth_percent": "of the bandwidth, %",
        "roofline_tokens_per_s": "roofline, tokens/s",
        "peak_memory_mb": "peak memory, MB",
    }
    shown = [name for name in further if any(name in entry for entry in entries)]
    rows = []
    for entry in entries:
        tokens = entry.get("max_tokens")
        batch = str(entry["batch_size"]) if tokens is None else f"{tokens:,} pieces"
        cells = [mean_lengths(entry), batch, entry["name"]]
        if entry["failure"] is not None:
            rows.append([*cells, entry["failure"], *["-"] * (4 + len(words) + len(shown))])
            continue
        ratio = "1" if compared[entry["name"]] is None else spread_cell(entry["ratio"], 3, "median")
        cells += [spread_cell(entry["tokens_per_s"], 1), *(spread_cell(entry["words_per_s"], 1) for _ in words)]
        cells += [ratio, spread_cell(entry["time_to_first_token_ms"], 1)]
        cells += [f"{entry['flops_per_token'] / 1e9:,.3g}", number(entry["bytes_per_token"] / 1e6, 1)]
        rows.append([*cells, *(_or_failure(entry[name]) if name in entry else "-" for name in shown)])
    options = data["settings"]
    notes = [
        f"tokens/s: pieces of the best hypotheses, end-of-sentence symbols not counted, for a second of search: mean ± "
        f"standard deviation of {options['runs']} runs; loading and segmentation are not timed. Beam "
        f"{options['beam']}, {options['threads']} thread{'s' if options['threads'] > 1 else ''}, "
        f"{data['machine']['device']}.",
        f"ratio: speed relative to that of {described(compared)}, run by run: median ± standard deviation. The models "
        "translate every batch in turn.",
        "first token: until a search that ends after one decoder step is done. GFLOP and MB moved: of the cost model.",
    ]
    if words:
        notes.append("words/s: words of the source text, which white space separates, for a second of search.")
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
