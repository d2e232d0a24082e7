"""The layouts of an exploration, drawn: speed against parameters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from owf_fairseq.explore.front import Timed
from owf_fairseq.explore.layouts import Key
from owf_fairseq.explore.tables import Exploration, paper_rows
from owf_fairseq.files.lines import PathLike
from owf_fairseq.files.outputs import output_file
from owf_fairseq.sharing import SIZES

_MEASURED: dict[str, Any] = {"linestyle": "", "color": "red", "markersize": 9}


def plot_layouts(exploration: Exploration, path: PathLike) -> None:
    """Draws all matches, the front, and what the paper measured, a panel for each workload.

    Args:
        exploration: what was found.
        path: of the picture, whose ending names its format.

    Raises:
        ImportError: matplotlib is missing.
        InputError: the picture can't be written.
    """
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every font
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    data, panels = exploration.data, exploration.timed
    rows = paper_rows(data["size"], data["vocab_size"])
    measured = [one for one in panels[0] if one.layout.key in rows]
    numbers = {one.layout.key: number for number, one in enumerate(measured, start=1)}
    layers = SIZES[data["size"]].decoder_layers
    figure = Figure(figsize=(1.2 + 5 * len(panels) + 3 * bool(measured), 5.4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, timed, workload in zip(axes, panels, data["workloads"], strict=True):
        points = _draw(axis, timed, numbers, layers)
        lengths = f"{workload['source_length']:g}/{workload['target_length']:g}"
        axis.set_title(f"{data['profile']['name']}, batch size {workload['batch_size']}, {lengths} pieces")
        axis.set_xlabel("parameters, millions")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("tokens/s, predicted")
    axes[0].legend(loc="lower left")
    figure.colorbar(points, ax=axes[-1], label="decoder layers with an FFN", ticks=list(range(layers + 1)))
    if measured:
        handles = [Line2D([], [], marker=f"${number}$", **_MEASURED) for number in numbers.values()]
        names = [f"{rows[key].row}: {_score(rows[key].bleu)}" for key in numbers]
        figure.legend(
            handles, names, loc="outside right upper", fontsize=7, title="the paper measured", title_fontsize=8
        )
    with output_file("--plot", path) as place:
        figure.savefig(place, format=Path(path).suffix.lstrip("."), dpi=150)


def _score(bleu: float | None) -> str:
    return "no BLEU" if bleu is None else f"BLEU {bleu}"


def _draw(axis: Any, timed: Sequence[Timed], numbers: dict[Key, int], layers: int) -> Any:
    """One panel; returns the points, for the scale of their colours."""
    ordered = timed[::-1]  # the fastest are drawn last, on top
    points = axis.scatter(
        [one.parameters / 1e6 for one in ordered],
        [one.tokens_per_s for one in ordered],
        c=[one.layout.ffn_layers("decoder") for one in ordered],
        s=7,
        cmap="viridis_r",
        vmin=0,
        vmax=layers,
        linewidths=0,
    )
    front = sorted((one.parameters / 1e6, one.tokens_per_s) for one in timed if one.on_front and one.is_first)
    # with as many parameters as lie between two points of the front, the slower one is the fastest that there is
    axis.step(*zip(*front, strict=True), where="pre", color="black", linewidth=1, marker=".", label="front")
    for one in timed:
        if one.layout.key in numbers:
            at = ([one.parameters / 1e6], [one.tokens_per_s])
            axis.plot(*at, "o", markersize=13, markerfacecolor="white", markeredgecolor="red", alpha=0.8)
            axis.plot(*at, marker=f"${numbers[one.layout.key]}$", **_MEASURED)
    return points
