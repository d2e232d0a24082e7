"""The nearest neighbours of a sentence in two models, side by side, to look at."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from owf_fairseq.analysis.lns import DECIMALS, cosine_similarities
from owf_fairseq.analysis.representations import STACKS, Stack
from owf_fairseq.analysis.test_set import Prepared
from owf_fairseq.errors import InputError
from owf_fairseq.tables import Report

KIND = "neighbors"
"""What the JSON says that it is."""

SHOWN = 10
"""Neighbours, where no number is given."""


def nearest(features: Tensor, sentence: int, number: int) -> list[tuple[int, float]]:
    """The nearest neighbours of a sentence.

    Args:
        features: (n, d).
        sentence: by number, from 0; it is not its own neighbour.
        number: of neighbours.

    Returns:
        Each with its cosine distance, the nearest first; equally near ones in the order of the text.
    """
    distances = (1 - cosine_similarities(features, range(sentence, sentence + 1))[0]).tolist()
    ordered = sorted(
        (other for other in range(len(distances)) if other != sentence),
        key=lambda other: (round(distances[other], DECIMALS), other),
    )
    return [(other, distances[other]) for other in ordered[:number]]


def side_by_side(prepared: Prepared, line: int, component: str | None = None) -> Report:
    """What two models find nearest to a sentence.

    Args:
        prepared: the first two models are looked at (with one, that one).
        line: of the test set, from 1.
        component: ``encoder.5.ffn``, or ``decoder.5`` for a whole layer; by default the encoder's last layer.

    Raises:
        InputError: there is no such line, or a model has no such component.
    """
    if line - 1 not in prepared.kept:
        total = len(prepared.texts.references[0].lines)
        why = "it was left out" if 1 <= line <= total else f"the text has {total:,} lines"
        raise InputError(f"`--neighbors` {line}: {why}")
    sentence = prepared.kept.index(line - 1)
    models = prepared.models[:-1][:2]  # the last one has random weights
    stack_name, _, label = (component or "").partition(".")
    if component is not None and stack_name not in STACKS:
        raise InputError(f"`--component` must begin with {' or '.join(f'{stack}.' for stack in STACKS)}: {component}")
    stack_name = stack_name or STACKS[0]
    found, problems = {}, []
    for model in models:
        stack = model.represent(prepared.settings)[stack_name]
        features = stack.components.get(label or next(reversed(stack.layers), ""))
        if features is None:
            problems.append(f"`--component` {component}: {model.name} has {_listed(stack, stack_name)}")
        else:
            found[model.name] = nearest(features, sentence, prepared.settings.k or SHOWN)
    if problems:
        raise InputError(problems)
    label = label or "last layer"
    return _report(prepared, line, f"{stack_name}, {label}", found)


def _listed(stack: Stack, name: str) -> str:
    return ", ".join(f"{name}.{label}" for label in stack.components)


def _report(prepared: Prepared, line: int, component: str, found: Mapping[str, list[tuple[int, float]]]) -> Report:
    source = prepared.texts.source
    assert source is not None
    numbers = [{other for other, _ in neighbors} for neighbors in found.values()]
    common = set.intersection(*numbers) if len(numbers) > 1 else set()
    header, rows = [], []
    for name in found:
        header += ["line", "distance", name]
    for rank in zip(*found.values(), strict=True):
        row = []
        for other, distance in rank:
            mark = "= " if other in common else ""
            row += [str(prepared.kept[other] + 1), f"{distance:.4f}", mark + source.lines[prepared.kept[other]]]
        rows.append(row)
    data = {
        "kind": KIND,
        "line": line,
        "sentence": source.lines[line - 1],
        "component": component,
        "neighbors": {
            name: [
                {"line": prepared.kept[other] + 1, "distance": distance, "sentence": source.lines[prepared.kept[other]]}
                for other, distance in neighbors
            ]
            for name, neighbors in found.items()
        },
    }
    notes = [f"line {line}: {source.lines[line - 1]}", f"{component}; distance: 1 - cosine"]
    if len(found) > 1:
        notes.append(f"=: near in both models ({len(common)} of {len(rows)})")
    return Report(header, rows, data, notes, words=[3 * n + 2 for n in range(len(found))])
