"""An analysis drawn: heatmaps of components with components, and bars layer by layer."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owf_fairseq.analysis.models import BENCHMARK, COMPARED, RANDOM, RANDOM_NAME
from owf_fairseq.analysis.representations import STACKS
from owf_fairseq.analysis.similarity import LAYERS, MODULES, SIMILARITY_METRICS
from owf_fairseq.analysis.tables import NOTHING, TITLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")

_CELL = 0.16
"""Inches of a component: room for its label at the size below."""
_PAGE = 9.7
"""Inches that a picture may be high, so that its labels can be read in print."""
_NAME, _FILE_NAME = 28, 100
"""Characters of a model's name that there is room for, in a picture and in the name of a file."""
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
    """All pictures with their names: ``MODEL.self.encoder``, ``MODEL.cross.encoder``, ``MODEL.layers`` and the like.

    What is too high for a page is in two pictures, ``MODEL.cross.decoder.1`` and ``.2``.
    """
    baseline, *others = data["models"]
    files = _file_names([model["name"] for model in data["models"]])
    for stack in STACKS:
        yield from _heatmaps(f"{files[baseline['name']]}.self.{stack}", self_similarity([baseline], stack), "CKA")
    for model in others:
        name = files[model["name"]]
        for stack in STACKS:
            yield from _heatmaps(f"{name}.self.{stack}", self_similarity([baseline, model], stack), "CKA")
            yield from _heatmaps(f"{name}.cross.{stack}", cross_similarity(baseline, model, stack), "CKA and LNS")
        if model["role"] == COMPARED:
            yield f"{name}.layers", layer_bars(data, model)


def _file_names(names: Sequence[str]) -> dict[str, str]:
    """Names of models as names of files, no two the same."""
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^\w.+-]+", "_", name, flags=re.ASCII).strip("._")[-_FILE_NAME:] or "model"
        taken = {other.lower() for other in found.values()}
        number, file = 2, plain
        while file.lower() in taken:
            number, file = number + 1, f"{plain}_{number}"
        found[name] = file
    return found


def _shown(name: str) -> str:
    """A model's name in a picture: start and end, if it is long; not as mathematics, whatever is in it."""
    short = name if len(name) <= _NAME else name[: _NAME // 2] + "…" + name[1 - _NAME // 2 :]
    return short.replace("$", r"\$")


Panel = tuple[str, Sequence[Sequence[float]], Sequence[str], Sequence[str], str, str]
"""Title, matrix (of which the labelled part is shown), labels of rows and columns, names of rows and columns."""


def self_similarity(models: Sequence[Mapping[str, Any]], stack: str) -> list[Panel]:
    """CKA of each model's components with each other (the paper's figure of redundancy)."""
    panels: list[Panel] = []
    for model in models:
        found = model["stacks"][stack]
        title = f"{_shown(model['name'])}, {stack}"
        if found["redundancy"]:
            title += f"\nadjacent − second neighbours: {found['redundancy']['difference']:+.3f}"
        panels.append((title, found["self"]["cka"], found[MODULES], found[MODULES], "", ""))
    return panels


def cross_similarity(baseline: Mapping[str, Any], model: Mapping[str, Any], stack: str) -> list[Panel]:
    """CKA and LNS of the baseline's components, rows, with a model's."""
    found = model["stacks"][stack]
    names = (_shown(baseline["name"]), _shown(model["name"]))
    return [
        (f"{TITLES[metric]}, {stack}", found["cross"][metric], found["baseline"][MODULES], found[MODULES], *names)
        for metric in SIMILARITY_METRICS
    ]


def _heatmaps(name: str, panels: Sequence[Panel], what: str) -> Iterator[tuple[str, Figure]]:
    """Panels as one picture, or as several where it would be too high for a page."""
    if len(panels) == 1 or _height(panels) <= _PAGE:
        yield name, _heatmap(panels, what)
        return
    for number, panel in enumerate(panels, 1):
        yield f"{name}.{number}", _heatmap([panel], what)


def _height(panels: Sequence[Panel]) -> float:
    """Inches of a picture."""
    return _CELL * sum(map(_rows, panels)) + 1.1 * len(panels)


def _rows(panel: Panel) -> int:
    return max(14, len(panel[2]))


def _heatmap(panels: Sequence[Panel], what: str) -> Figure:
    """Panels, one below the other with one scale of colours; a negative value, of debiased CKA, has the colour of 0."""
    from matplotlib.figure import Figure

    width = max(14, *(len(panel[3]) for panel in panels))
    figure = Figure(figsize=(_CELL * width + 1.9, _height(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=list(map(_rows, panels)))[:, 0]
    image = None
    for axis, (title, matrix, down, across, name_down, name_across) in zip(axes, panels, strict=True):
        axis.set_title(title)
        if not (down and across):
            axis.text(0.5, 0.5, NOTHING, ha="center", va="center", wrap=True)
            axis.set_axis_off()
            continue
        shown = [list(values[: len(across)]) for values in matrix[: len(down)]]
        image = axis.imshow(shown, vmin=0, vmax=1, cmap="viridis", aspect="equal")
        axis.set_xticks(range(len(across)), across, rotation=90)
        axis.set_yticks(range(len(down)), down)
        axis.set_xlabel(name_across)
        axis.set_ylabel(name_down)
    if image is not None:
        figure.colorbar(image, ax=list(axes), label=what, shrink=0.6, fraction=0.05)
    return figure


def layer_bars(data: Mapping[str, Any], model: Mapping[str, Any]) -> Figure:
    """Similarity to the baseline, component by component; the benchmark in grey, random weights as a line."""
    from matplotlib.figure import Figure

    panels = [(stack, metric) for stack in STACKS for metric in SIMILARITY_METRICS]
    kinds = {stack: _kind(model["stacks"][stack]) for stack in STACKS}
    longest = max(len(model["stacks"][stack][kinds[stack]]) for stack in STACKS)
    figure = Figure(figsize=(_CELL * max(26, longest) + 0.8, 1.5 * len(panels) + 1.0), layout="constrained")
    drawn: dict[str, Any] = {}
    for axis, (stack, metric) in zip(figure.subplots(len(panels)), panels, strict=True):
        kind = kinds[stack]
        labels = model["stacks"][stack][kind]
        own = model["stacks"][stack]["scores"][kind][metric]
        axis.set_title(f"{TITLES[metric]}, {stack}" + (", whole layers" if kind == LAYERS else ""))
        if own is None:
            axis.text(0.5, 0.5, NOTHING, ha="center", va="center", wrap=True)
            axis.set_axis_off()
            continue
        places = range(len(labels))
        seeds, random = (_scores(data, role, stack, kind, metric) for role in (BENCHMARK, RANDOM))
        if seeds:
            means = [sum(values) / len(values) for values in zip(*seeds, strict=True)]
            drawn["benchmark"] = axis.bar([n - 0.2 for n in places], means, 0.4, color="0.65")
        drawn[_shown(model["name"])] = axis.bar([n + 0.2 for n in places], own, 0.4, color="tab:blue")
        for values in random:
            (drawn[RANDOM_NAME],) = axis.plot(places, values, "k_", markersize=7)
        axis.set_xticks(places, labels, rotation=90)
        axis.set_xlim(-0.6, len(labels) - 0.4)
        axis.set_ylim(0, 1)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
    if drawn:
        figure.legend(list(drawn.values()), list(drawn), loc="outside lower center", ncols=3 if longest > 20 else 1)
    figure.suptitle(f"Similarity to {_shown(data['models'][0]['name'])}")
    return figure


def _kind(stack: Mapping[str, Any]) -> str:
    """Modules, or whole layers where the two models have different modules."""
    return MODULES if stack["scores"][MODULES][SIMILARITY_METRICS[0]] is not None else LAYERS


def _scores(data: Mapping[str, Any], role: str, stack: str, kind: str, metric: str) -> list[list[float]]:
    """The scores of all models of a role that can be compared, component by component."""
    found = [model["stacks"][stack]["scores"][kind][metric] for model in data["models"] if model["role"] == role]
    return [values for values in found if values is not None]
