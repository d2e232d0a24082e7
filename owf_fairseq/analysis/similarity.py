"""How similar models are to a baseline, component by component, and how redundant each is by itself.

Source: the paper's Sections 2.3 and 4 ("Analyzing Internal Representations") and its appendix of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from owf_fairseq import __version__
from owf_fairseq.analysis.cka import cka_matrix
from owf_fairseq.analysis.lns import lns_matrix
from owf_fairseq.analysis.preparation import PreparedAnalysis
from owf_fairseq.analysis.representations import STACKS, Stack
from owf_fairseq.progress import Progress

SIMILARITY_KIND = "similarity"
"""What the JSON says that it is."""

SIMILARITY_METRICS = ("cka", "lns")
MODULES, LAYERS = "modules", "layers"
Matrix = list[list[float]]


def analyse(prepared: PreparedAnalysis) -> dict[str, Any]:
    """Compares every model with the baseline and with itself. Two models' representations are in memory at a time.

    Args:
        prepared: the models and the test set.

    Returns:
        For JSON: ``settings``, ``files``, and for each of ``models`` its facts and under ``stacks`` the similarity
        matrices, whose rows are the baseline's components, or in ``self`` its own, and what follows from them.

    Raises:
        InputError: a model can't be loaded, or makes no numbers of the sentences.
    """
    settings = prepared.settings
    models = []
    baseline: dict[str, Stack] = {}
    for model in prepared.models:
        found = model.represent(settings)
        baseline = baseline or found
        stacks = compare_models(baseline, found, prepared.k, settings.debiased, model.name)
        models.append({**model.facts, "role": model.role, "stacks": stacks})
        del found  # before the next model's are there
    texts = prepared.texts
    assert texts.source is not None
    return {
        "kind": SIMILARITY_KIND,
        "versions": {"owf_fairseq": __version__, "torch": torch.__version__},
        "settings": {**asdict(settings), "k": prepared.k, "seed": prepared.models[-1].seed},
        "files": {
            "source": texts.source.facts(),
            "reference": texts.references[0].facts(),
            "sentences": len(prepared.kept),
        },
        "models": models,
    }


def compare_models(
    baseline: Mapping[str, Stack], model: Mapping[str, Stack], k: int, debiased: bool = False, name: str = ""
) -> dict[str, Any]:
    """All numbers of a model, by stack.

    Args:
        baseline: its representations.
        model: likewise; the same object for the baseline itself.
        k: neighbours for LNS.
        debiased: the estimator of CKA.
        name: for the progress.
    """
    own = {stack: Distinct(list(model[stack].components.values())) for stack in STACKS}
    others = own
    if model is not baseline:
        others = {stack: Distinct(list(baseline[stack].components.values())) for stack in STACKS}
    sides = [own] if others is own else [own, others]
    pairs = sum(len(side[stack]) * len(own[stack]) for side in sides for stack in STACKS)
    with Progress("pairs of components", pairs, label=f"{name}: CKA") as progress:
        itself, *rest = (
            {stack: matrix(cka_matrix, side[stack], own[stack], debiased, progress.advance) for stack in STACKS}
            for side in sides
        )
    cka = rest[0] if rest else itself
    with Progress("sentences", sum(one.sentences for one in own.values()), label=f"{name}: LNS") as progress:
        lns = {stack: matrix(lns_matrix, others[stack], own[stack], k, progress.advance) for stack in STACKS}
    return {
        stack: _numbers(baseline[stack], model[stack], itself[stack], {"cka": cka[stack], "lns": lns[stack]})
        for stack in STACKS
    }


class Distinct:
    """Representations without those that are there twice: a layer's is mostly that of its last component.

    Attributes:
        kept: each of them once.
        places: for each of all, which of those that are kept it is.
    """

    def __init__(self, features: Sequence[Tensor]) -> None:
        self.kept: list[Tensor] = []
        self.places: list[int] = []
        for tensor in features:
            place = next((n for n, kept in enumerate(self.kept) if torch.equal(kept, tensor)), len(self.kept))
            if place == len(self.kept):
                self.kept.append(tensor)
            self.places.append(place)

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def sentences(self) -> int:
        """Of each representation; 0 if there is none."""
        return len(self.kept[0]) if self.kept else 0


def matrix(measure: Callable[..., Tensor], one: Distinct, other: Distinct, *how: Any) -> Matrix:
    """A measure of all representations with all others, those that are there twice included."""
    if not (one.kept and other.kept):
        return [[] for _ in one.places]
    found = measure(one.kept, other.kept, *how)
    whole: Matrix = found[one.places][:, other.places].tolist()
    return whole


def _numbers(baseline: Stack, stack: Stack, itself: Matrix, cross: dict[str, Matrix]) -> dict[str, Any]:
    """Matrices with their labels, and what follows from them."""
    labels = {MODULES: list(stack.modules), LAYERS: list(stack.layers)}
    names = {MODULES: list(baseline.modules), LAYERS: list(baseline.layers)}
    return {
        **labels,
        "baseline": names,
        "self": {"cka": itself},
        "cross": cross,
        "redundancy": redundancy(itself, len(labels[MODULES])),
        "scores": {
            of: {metric: corresponding(cross[metric], names, labels, of) for metric in SIMILARITY_METRICS}
            for of in (MODULES, LAYERS)
        },
    }


def corresponding(
    matrix: Matrix, baseline: Mapping[str, Sequence[str]], labels: Mapping[str, Sequence[str]], of: str
) -> list[float] | None:
    """The similarities of corresponding components.

    Args:
        matrix: of the baseline's components, rows, with those of a model, columns; modules before layers.
        baseline, labels: of the components, by ``MODULES`` and ``LAYERS``.
        of: which of them.

    Returns:
        In the order of the labels; None if the two models don't have the same ones.
    """
    if baseline[of] != labels[of] or not labels[of]:
        return None
    row, column = (0, 0) if of == MODULES else (len(baseline[MODULES]), len(labels[MODULES]))
    return [matrix[row + n][column + n] for n in range(len(labels[of]))]


def redundancy(cka: Matrix, modules: int) -> dict[str, float] | None:
    """How much more alike neighbouring components are than second neighbours.

    Where a model is redundant, a component changes little, and similarity falls with the distance: the difference is
    positive. Where every second component is more alike than every next one, which the paper sees as a checkerboard in
    One Wide FFN's plots (Section "A Qualitative View of Redundancy"), it is negative. As in those plots, second
    neighbours are of the same kind where a layer has two components, and of another kind where it has three.

    Args:
        cka: of a stack with itself, modules first, in the order of the computation.
        modules: their number.

    Returns:
        ``adjacent`` and ``second``, the means over all such pairs, and their ``difference``; None with under three
        modules.
    """
    if modules < 3:
        return None
    adjacent, second = (sum(cka[n][n + apart] for n in range(modules - apart)) / (modules - apart) for apart in (1, 2))
    return {"adjacent": adjacent, "second": second, "difference": adjacent - second}


def summary_score(stack: Mapping[str, Any], metric: str, of: str | None = None) -> tuple[str, float] | None:
    """The mean similarity of a stack to the baseline's, and what it is the mean over.

    Args:
        stack: as ``compare_models`` gives it.
        metric: of ``SIMILARITY_METRICS``.
        of: ``MODULES`` or ``LAYERS``; by default modules, and whole layers where the two models have different modules,
            as the paper does for dropped FFNs.

    Returns:
        None if the numbers of layers differ.
    """
    for kind in (MODULES, LAYERS) if of is None else (of,):
        values = stack["scores"][kind][metric]
        if values is not None:
            return kind, sum(values) / len(values)
    return None
