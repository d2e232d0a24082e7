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
from owf_fairseq.analysis.representations import STACKS, Stack
from owf_fairseq.analysis.test_set import Prepared
from owf_fairseq.progress import Progress

KIND = "similarity"
"""What the JSON says that it is."""

METRICS = ("cka", "lns")
MODULES, LAYERS = "modules", "layers"
Matrix = list[list[float]]


def analyse(prepared: Prepared, warn: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Compares every model with the baseline and with itself. Two models are in memory at a time.

    Args:
        prepared: the models and the test set.
        warn: is told what makes a number doubtful.

    Returns:
        For JSON: ``settings``, ``files``, and for each of ``models`` its facts and under ``stacks`` the similarity
        matrices, whose rows are the baseline's components, or in ``self`` its own, and what follows from them.
    """
    settings = prepared.settings
    models = []
    baseline: dict[str, Stack] = {}
    for model in prepared.models:
        found = model.represent(settings)
        baseline = baseline or found
        count = sum(_pairs(found[stack]) + _pairs(baseline[stack], found[stack]) for stack in STACKS)
        with Progress("pairs of components", count, label=model.name) as progress:
            compare = _comparer(prepared.k, settings.debiased, progress)
            stacks = {stack: compare_stacks(baseline[stack], found[stack], compare) for stack in STACKS}
        models.append({**model.facts, "role": model.role, "stacks": stacks})
    most = max(stack["dimension"] or 0 for model in models for stack in model["stacks"].values())
    if len(prepared.kept) <= most and not settings.debiased:
        warn(
            f"{len(prepared.kept):,} sentences are not more than the {most:,} dimensions of the representations, so "
            "that CKA is too high for any two of them: take more sentences, or `--debiased`"
        )
    texts = prepared.texts
    assert texts.source is not None
    return {
        "kind": KIND,
        "versions": {"owf_fairseq": __version__, "torch": torch.__version__},
        "settings": {**asdict(settings), "k": prepared.k},
        "files": {
            "source": texts.source.facts(),
            "reference": texts.references[0].facts(),
            "sentences": len(prepared.kept),
        },
        "models": models,
    }


Compare = Callable[[Sequence[Tensor], Sequence[Tensor]], dict[str, Matrix]]


def _comparer(k: int, debiased: bool, progress: Progress) -> Compare:
    def compare(one: Sequence[Tensor], other: Sequence[Tensor]) -> dict[str, Matrix]:
        if not (one and other):
            return {metric: [[] for _ in one] for metric in METRICS}
        return {
            "cka": cka_matrix(one, other, debiased, progress.advance).tolist(),
            "lns": lns_matrix(one, other, k).tolist(),
        }

    return compare


def _pairs(one: Stack, other: Stack | None = None) -> int:
    return len(one.components) * len((other or one).components)


def compare_stacks(baseline: Stack, stack: Stack, compare: Compare) -> dict[str, Any]:
    """All numbers of one stack of a model.

    Args:
        baseline: of the same name.
        stack: the model's.
        compare: makes the matrices.
    """
    labels = {MODULES: list(stack.modules), LAYERS: list(stack.layers)}
    own = list(stack.components.values())
    itself = compare(own, own)
    others = list(baseline.components.values())
    cross = itself if stack is baseline else compare(others, own)
    names = {MODULES: list(baseline.modules), LAYERS: list(baseline.layers)}
    return {
        **labels,
        "baseline": names,
        "dimension": own[0].size(1) if own else None,
        "self": itself,
        "cross": cross,
        "redundancy": redundancy(itself["cka"], len(labels[MODULES])),
        "scores": {
            of: {metric: corresponding(cross[metric], names, labels, of) for metric in METRICS}
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
    One Wide FFN's plots (Section "A Qualitative View of Redundancy"), it is negative.

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


def score(stack: Mapping[str, Any], metric: str, of: str | None = None) -> tuple[str, float] | None:
    """The mean similarity of a stack to the baseline's, and what it is the mean over.

    Args:
        stack: as ``compare_stacks`` gives it.
        metric: of ``METRICS``.
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
