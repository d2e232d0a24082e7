"""The cost model alone: what archs cost, how fast they should be, and at which batch size an advantage ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from owf_fairseq.cost_model.cost import ModelShape, Workload, cost
from owf_fairseq.cost_model.device_profiles import LARGEST_BATCH, DeviceProfile
from owf_fairseq.cost_model.speed_tables import batch_size_table, mean_lengths
from owf_fairseq.tables import Report, number


def predict(
    names: Sequence[str],
    shapes: Sequence[ModelShape],
    workloads: Sequence[Workload],
    batch_sizes: Sequence[int],
    profile: DeviceProfile,
    fp16: bool = False,
) -> list[Report]:
    """Tables of what the models cost, and of their speeds if there are several batch sizes; all with the same JSON.

    Args:
        names: of the models; speeds are relative to the first.
        shapes: theirs.
        workloads: one for each pair of lengths; their batch size is not looked at.
        batch_sizes: the costs are for the first of them.
        profile: the device.
        fp16: whether values have two bytes.
    """
    entries = []
    for workload in workloads:
        ends = [None, *(profile.break_even(shapes[0], shape, workload, fp16) for shape in shapes[1:])]
        for batch_size in batch_sizes:
            at = replace(workload, batch_size=batch_size)
            speeds = [profile.tokens_per_s(shape, at, fp16) for shape in shapes]
            entries += [
                {
                    "name": name,
                    "batch_size": batch_size,
                    "lengths": f"{workload.source_length:g}/{workload.target_length:g}",
                    "source_length": workload.source_length,
                    "target_length": workload.target_length,
                    **asdict(cost(shape, at, "float16" if fp16 else "float32")),
                    "tokens_per_s": speed,
                    "ratio": speed / speeds[0],
                    "break_even_batch_size": end,
                }
                for name, shape, speed, end in zip(names, shapes, speeds, ends, strict=True)
            ]
    data = {
        "kind": "prediction",
        "profile": asdict(profile),
        "fp16": fp16,
        "beam": workloads[0].beam,
        "models": [{"name": name, **asdict(shape)} for name, shape in zip(names, shapes, strict=True)],
        "predictions": entries,
    }
    tables = [cost_table(data, batch_sizes[0])]
    if len(batch_sizes) > 1:
        tables.append(
            batch_size_table(
                {name: None if name == names[0] else names[0] for name in names},
                entries,
                lambda entry: number(entry["tokens_per_s"], 1),
                lambda entry: entry["ratio"],
                data,
            )
        )
    return tables


def cost_table(data: dict[str, Any], batch_size: int) -> Report:
    """What every model costs at one batch size."""
    header = (
        *("source/target", "model", "enc. MFLOP/source token", "enc. MB/batch", "dec. MFLOP/token", "dec. MB/step"),
        *("MFLOP/token", "enc. MB/token", "dec. MB/token", "tokens/s", "ratio", "behind from batch"),
    )
    first = data["models"][0]["name"]
    rows = []
    for entry in data["predictions"]:
        if entry["batch_size"] != batch_size:
            continue
        behind = entry["break_even_batch_size"]
        millions = (
            *("encoder_flops", "encoder_bytes", "decoder_flops", "decoder_bytes", "flops"),
            *("encoder_bytes_per_token", "decoder_bytes_per_token"),
        )
        rows.append(
            [
                *(mean_lengths(entry), entry["name"], *(number(entry[name] / 1e6, 1) for name in millions)),
                *(number(entry["tokens_per_s"], 1), f"{entry['ratio']:.2f}"),
                "-" if entry["name"] == first else f"above {LARGEST_BATCH:,}" if behind is None else number(behind),
            ]
        )
    profile = data["profile"]
    rate = profile["half_flops"] if data["fp16"] else profile["flops"]
    overheads = ("attention_overhead", "ffn_overhead", "step_overhead")
    fitted = (
        f"; products reach {100 * profile['efficiency']:.0f} % of it, and "
        + ", ".join(f"{1e6 * profile[name]:,.0f} µs" for name in overheads)
        + " go to each attention, FFN and step"
        if any(profile[name] for name in overheads)
        else ""
    )
    notes = (
        f"Batch size {batch_size}, beam {data['beam']}. enc.: the source side, once a batch (MB: weights). dec.: the "
        "steps (MB: weights). MFLOP/token: of both for a generated token; MB/token: moved for a generated token, "
        "activations and caches included.",
        f"tokens/s: predicted for {profile['name']}, {rate / 1e9:,.6g} GFLOP/s and {profile['bandwidth'] / 1e9:,.4g} "
        f"GB/s{fitted}. ({profile['source']}.)",
        f"behind from batch: the smallest batch size at which the model is not faster than {first}.",
    )
    return Report(header, rows, data, notes, words=(0, 1))
