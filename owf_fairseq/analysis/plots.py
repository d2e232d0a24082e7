"""An analysis drawn: heatmaps of components with components, and bars layer by layer."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owf_fairseq.analysis.representations import STACKS
from owf_fairseq.analysis.similarity import LAYERS, METRICS, MODULES
from owf_fairseq.analysis.tables import TITLES
from owf_fairseq.analysis.test_set import BENCHMARK, COMPARED, RANDOM

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")

_CELL = 0.19
"""Inches of a component: room for its label at the size below."""
STYLE = {"font.size": 8, "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.titlesize": 8, "svg.hashsalt": "owf"}


def draw(data: Mapping[str, Any], folder: Path) -> list[str]:
    """Draws everything, in every one of ``FORMATS``.

    Args:
        data: as ``similarity.analyse`` returns it.
        folder: to write to.

    Returns:
        The names of the files, without the ending.

    Raises:
        ImportError: matplotlib is missing.
    """
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every font
    import matplotlib

    names = []
    with matplotlib.rc_context(STYLE):
        for name, figure in figures(data):
            for ending in FORMATS:
                # without a date, the same numbers give the same file
                figure.savefig(folder / f"{name}.{ending}", dpi=150, metadata={"Date": None} if ending == "svg" else {})
            names.append(name)
    return names


def figures(data: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """All pictures with their names: ``MODEL.self``, ``MODEL.cross`` and ``MODEL.layers``."""
    baseline, *others = data["models"]
    files = _file_names([model["name"] for model in data["models"]])
    yield f"{files[baseline['name']]}.self", self_similarity([baseline])
    for model in others:
        name = files[model["name"]]
        yield f"{name}.self", self_similarity([baseline, model])
        yield f"{name}.cross", cross_similarity(baseline, model)
        if model["role"] == COMPARED:
            yield f"{name}.layers", layer_bars(data, model)


def _file_names(names: Sequence[str]) -> dict[str, str]:
    """Names of models as names of files, no two the same."""
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^\w.+-]+", "_", name).strip("._") or "model"
        taken = {other.lower() for other in found.values()}
        number, file = 2, plain
        while file.lower() in taken:
            number, file = number + 1, f"{plain}_{number}"
        found[name] = file
    return found


def self_similarity(models: Sequence[Mapping[str, Any]]) -> Figure:
    """CKA of each model's components with each other, a row a model (the paper's figure of redundancy)."""
    panels = []
    for model in models:
        for name in STACKS:
            stack = model["stacks"][name]
            redundancy = stack["redundancy"]
            title = f"{model['name']}, {name}"
            if redundancy:
                title += f"\nadjacent − second neighbours: {redundancy['difference']:+.3f}"
            labels = stack[MODULES]
            panels.append((title, stack["self"]["cka"], labels, labels, "", ""))
    return _heatmaps(panels, "CKA")


def cross_similarity(baseline: Mapping[str, Any], model: Mapping[str, Any]) -> Figure:
    """CKA and LNS of the baseline's components, rows, with a model's."""
    panels = []
    for metric in METRICS:
        for name in STACKS:
            stack = model["stacks"][name]
            axes = (baseline["name"], model["name"])
            panels.append(
                (f"{TITLES[metric]}, {name}", stack["cross"][metric], stack["baseline"][MODULES], stack[MODULES], *axes)
            )
    return _heatmaps(panels, "CKA and LNS")


Panel = tuple[str, Sequence[Sequence[float]], Sequence[str], Sequence[str], str, str]
"""Title, matrix (of which the labelled part is shown), labels of rows and columns, names of rows and columns."""


def _heatmaps(panels: Sequence[Panel], what: str) -> Figure:
    """Panels, two in a row, with one scale of colours."""
    from matplotlib.figure import Figure

    rows = [panels[n : n + 2] for n in range(0, len(panels), 2)]
    widths = [max(12, *(len(row[column][3]) for row in rows)) for column in range(2)]
    heights = [max(10, *(len(panel[2]) for panel in row)) for row in rows]
    figure = Figure(
        figsize=(_CELL * sum(widths) + 2.4, _CELL * sum(heights) + 1.0 * len(rows) + 0.2), layout="constrained"
    )
    axes = figure.subplots(len(rows), 2, squeeze=False, width_ratios=widths, height_ratios=heights)
    image = None
    for row, line in zip(rows, axes, strict=True):
        for (title, matrix, down, across, name_down, name_across), axis in zip(row, line, strict=True):
            axis.set_title(title)
            if not (down and across):
                axis.text(0.5, 0.5, "nothing to compare", ha="center", va="center")
                axis.set_axis_off()
                continue
            shown = [list(values[: len(across)]) for values in matrix[: len(down)]]
            image = axis.imshow(shown, vmin=0, vmax=1, cmap="viridis", aspect="equal")
            axis.set_xticks(range(len(across)), across, rotation=90)
            axis.set_yticks(range(len(down)), down)
            axis.set_xlabel(name_across)
            axis.set_ylabel(name_down)
    if image is not None:
        figure.colorbar(image, ax=axes, label=what, shrink=0.8, fraction=0.04)
    return figure


def layer_bars(data: Mapping[str, Any], model: Mapping[str, Any]) -> Figure:
    """Similarity to the baseline, component by component; the benchmark in grey, random weights as a line."""
    from matplotlib.figure import Figure

    panels = [(name, metric) for name in STACKS for metric in METRICS]
    kinds = {name: _kind(model["stacks"][name]) for name in STACKS}
    longest = max(len(model["stacks"][name][kinds[name]]) for name in STACKS)
    figure = Figure(figsize=(max(5.0, 0.25 * longest + 1.0), 1.75 * len(panels) + 0.8), layout="constrained")
    drawn: dict[str, Any] = {}
    for axis, (name, metric) in zip(figure.subplots(len(panels)), panels, strict=True):
        kind = kinds[name]
        labels = model["stacks"][name][kind]
        own = model["stacks"][name]["scores"][kind][metric]
        axis.set_title(f"{TITLES[metric]}, {name}" + (", whole layers" if kind == LAYERS else ""))
        if own is None:
            axis.text(0.5, 0.5, "the numbers of layers differ", ha="center", va="center")
            axis.set_axis_off()
            continue
        places = range(len(labels))
        seeds, random = (_scores(data, role, name, kind, metric) for role in (BENCHMARK, RANDOM))
        if seeds:
            means = [sum(values) / len(values) for values in zip(*seeds, strict=True)]
            drawn["benchmark"] = axis.bar([n - 0.2 for n in places], means, 0.4, color="0.65")
        drawn[model["name"]] = axis.bar([n + 0.2 for n in places], own, 0.4, color="tab:blue")
        for values in random:
            (drawn["random weights"],) = axis.plot(places, values, "k_", markersize=9)
        axis.set_xticks(places, labels, rotation=90)
        axis.set_xlim(-0.6, len(labels) - 0.4)
        axis.set_ylim(0, 1)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
    figure.legend(list(drawn.values()), list(drawn), loc="outside lower center", ncols=3 if longest > 20 else 1)
    figure.suptitle(f"Similarity to {data['models'][0]['name']}")
    return figure


def _kind(stack: Mapping[str, Any]) -> str:
    """Modules, or whole layers where the two models have different modules."""
    return MODULES if stack["scores"][MODULES][METRICS[0]] is not None else LAYERS


def _scores(data: Mapping[str, Any], role: str, stack: str, kind: str, metric: str) -> list[list[float]]:
    """The scores of all models of a role that can be compared, component by component."""
    found = [model["stacks"][stack]["scores"][kind][metric] for model in data["models"] if model["role"] == role]
    return [values for values in found if values is not None]
