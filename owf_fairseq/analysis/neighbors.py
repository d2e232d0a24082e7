"""The nearest neighbours of a sentence in two models, side by side, to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from torch import Tensor

from owf_fairseq.analysis.lns import DECIMALS, cosine_similarities
from owf_fairseq.analysis.preparation import PreparedAnalysis
from owf_fairseq.analysis.representations import STACKS
from owf_fairseq.errors import InputError
from owf_fairseq.tables import Report

NEIGHBORS_KIND = "neighbors"
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


def side_by_side(prepared: PreparedAnalysis, line: int, component: str | None = None) -> Report:
    """What one model or two find nearest to a sentence.

    Args:
        prepared: one model or two, beside the random one, which is not looked at.
        line: of the test set, from 1.
        component: ``encoder.5.ffn``, or ``decoder.5`` for a whole layer; by default the encoder's last layer.

    Raises:
        InputError: there is no such line, there are more models, or one has no such component.
    """
    models = prepared.models[:-1]
    stack_name, _, label = (component or f"{STACKS[0]}.").partition(".")
    problems = []
    if line - 1 not in prepared.kept:
        total = len(prepared.texts.references[0].lines)
        why = f"the text has {total:,} lines"
        if 1 <= line <= total:
            only = prepared.settings.sentences
            why = f"`--sentences` {only} leaves it out" if only and line > only else "it was left out, see above"
        problems.append(f"`--neighbors` {line}: {why}")
    if stack_name not in STACKS:
        problems.append(f"`--component` must begin with {' or '.join(f'{stack}.' for stack in STACKS)}: {component}")
    if len(models) > 2:
        problems.append(f"`--neighbors` sets two models side by side, but {len(models)} are named")
    if problems:
        raise InputError(problems)
    sentence = prepared.kept.index(line - 1)
    found = {}
    for model in models:
        stack = model.represent(prepared.settings)[stack_name]
        wanted = label or next(reversed(stack.layers), "")
        if wanted in stack.components:
            found[model.name] = nearest(stack.components[wanted], sentence, prepared.settings.k or SHOWN)
        else:
            there = ", ".join(f"{stack_name}.{one}" for one in stack.components) or f"nothing in its {stack_name}"
            problems.append(f"`--component` {component or f'{stack_name}.'}: {model.name} has {there}")
    if problems:
        raise InputError(problems)
    return _report(prepared, line, stack_name, label or "last layer", found)


def _report(
    prepared: PreparedAnalysis, line: int, stack: str, label: str, found: Mapping[str, list[tuple[int, float]]]
) -> Report:
    # what the decoder reads are the references
    texts = {"encoder": prepared.texts.source, "decoder": prepared.texts.references[0]}
    text = texts[stack]
    assert text is not None
    numbers = [{other for other, _ in neighbors} for neighbors in found.values()]
    common = set.intersection(*numbers) if len(numbers) > 1 else set()
    header: list[str] = []
    for name in found:
        header += ["line", "distance", name]
    rows = []
    for rank in zip(*found.values(), strict=True):
        row = []
        for other, distance in rank:
            mark = "= " if other in common else ""
            row += [str(prepared.kept[other] + 1), f"{distance:.4f}", mark + text.lines[prepared.kept[other]]]
        rows.append(row)
    data = {
        "kind": NEIGHBORS_KIND,
        "settings": asdict(prepared.settings),
        "file": text.facts(),
        "line": line,
        "sentence": text.lines[line - 1],
        "component": f"{stack}, {label}",
        "neighbors": {
            name: [
                {"line": prepared.kept[other] + 1, "distance": distance, "sentence": text.lines[prepared.kept[other]]}
                for other, distance in neighbors
            ]
            for name, neighbors in found.items()
        },
    }
    notes = [f"line {line}: {text.lines[line - 1]}", f"{stack}, {label}; distance: 1 - cosine"]
    if len(found) > 1:
        notes.append(f"=: near in both models ({len(common)} of {len(rows)})")
    return Report(header, rows, data, notes, words=[3 * n + 2 for n in range(len(found))])
