"""Decoding speed by batch size, drawn."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from owf_fairseq.cost_model.speed_tables import TEXT
from owf_fairseq.files.lines import PathLike
from owf_fairseq.files.outputs import output_file


def plot(data: dict[str, Any], path: PathLike) -> None:
    """Draws tokens a second, and each model's speed relative to its baseline's, with standard deviations.

    Args:
        data: what the JSON of a measurement or a prediction holds.
        path: of the picture, whose ending names its format.

    Raises:
        ImportError: matplotlib is missing.
        InputError: the picture can't be written.
    """
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every font
    from matplotlib.figure import Figure

    entries = data["measurements"] if data["kind"] == "benchmark" else data["predictions"]
    names = [model["name"] for model in data["models"]]
    pairs = list(dict.fromkeys(entry["lengths"] for entry in entries))
    figure = Figure(figsize=(1 + 4.6 * len(pairs), 6.4), layout="constrained")
    axes = figure.subplots(2, len(pairs), sharex=True, squeeze=False)
    for column, pair in enumerate(pairs):
        shown = [entry for entry in entries if entry["lengths"] == pair]
        for name in names:
            own = [entry for entry in shown if entry["name"] == name and entry["tokens_per_s"] is not None]
            sizes = [entry["batch_size"] for entry in own]
            _draw(axes[0][column], sizes, [_mean_and_sd(entry["tokens_per_s"]) for entry in own], name)
            ratios = [entry for entry in own if entry["ratio"] is not None]
            values = [_mean_and_sd(entry["ratio"], "median") for entry in ratios]
            _draw(axes[1][column], [entry["batch_size"] for entry in ratios], values, name)
        axes[0][column].set_ylim(bottom=0)
        axes[0][column].set_title(pair if pair == TEXT else f"{pair} source/target pieces")
        axes[1][column].set_xlabel("batch size")
        for axis in axes[:, column]:
            axis.set_xscale("log", base=2)
            axis.set_xticks(sorted({entry["batch_size"] for entry in shown}))
            axis.xaxis.set_major_formatter("{x:.0f}")
            axis.minorticks_off()
            axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("tokens/s" if data["kind"] == "benchmark" else "tokens/s, predicted")
    baselines = {model.get("baseline") for model in data["models"]} - {None} or {names[0]}  # a prediction has none
    axes[1][0].set_ylabel(f"speed relative to {baselines.pop() if len(baselines) == 1 else 'its baseline'}")
    axes[0][0].legend()
    with output_file("--plot", path) as place:
        figure.savefig(place, format=Path(path).suffix.lstrip("."), dpi=150)


def _draw(axis: Any, sizes: list[int], values: list[tuple[float, float]], name: str) -> None:
    axis.errorbar(sizes, [mean for mean, _ in values], [sd for _, sd in values], marker="o", capsize=3, label=name)


def _mean_and_sd(value: Any, of: str = "mean") -> tuple[float, float]:
    return (value[of], value["sd"] or 0.0) if isinstance(value, dict) else (value, 0.0)
