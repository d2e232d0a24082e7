"""Scores of a multilingual system: per direction, and on all directions together.

All together means the sum of the statistics of every segment, each taken with its direction's own tokenizer: as if the
test sets were one, which is what the paper does with one tokenizer for all languages (spBLEU).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from owf_fairseq.baselines import compared_with
from owf_fairseq.errors import InputError, Warn, collect
from owf_fairseq.scoring.checks import find_warnings
from owf_fairseq.scoring.direction_files import find_files, sides
from owf_fairseq.scoring.evaluate import (
    MetricScores,
    cell,
    head,
    named,
    score_notes,
    score_test_sets,
    tokenizer_in_use,
)
from owf_fairseq.scoring.inputs import TestSet, read_test_set, unnamed_systems
from owf_fairseq.scoring.metrics import Metrics, MetricSettings
from owf_fairseq.tables import Report, number


def evaluate_directions(
    hypotheses: Sequence[str],
    references: Sequence[str],
    source: str | None = None,
    *,
    baselines: Sequence[str] = (),
    sizes: bool = False,
    settings: MetricSettings | None = None,
    warn: Warn = print,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Scores systems on many directions, each with BLEU's tokenizer for its target language.

    Args:
        hypotheses: folders, each a path or ``NAME=PATH``; for their files see ``DIRECTIONS_LAYOUT``.
        references, source: folders.
        baselines, sizes: see `evaluate`; folders in place of files.
        settings: the metrics and their settings.
        warn: is told what looks wrong, before anything is fetched or scored.
        problems: that the caller has found, to be reported with those found here.

    Returns:
        What ``--json`` writes: `evaluate`'s, where the systems' scores are those of all directions together, and each
        system has its scores by direction.

    Raises:
        InputError: with every problem of the folders, the files, the metrics and what they need.
    """
    settings = settings or MetricSettings()
    metrics = Metrics(settings)
    problems = list(problems)
    how = (baselines, "folder", sizes)
    systems, compared = collect(problems, lambda: named(hypotheses, *how)) or (unnamed_systems(hypotheses), {})
    found = (collect(problems, lambda: find_files(systems, references, source)) if systems else None) or {}
    languages = {direction: sides(direction)[1] for direction in found}
    problems += metrics.check(list(languages.values()) or [None], has_source=source is not None)
    test_sets: dict[str, TestSet] = {}
    for direction, (files, reference_files, source_file) in found.items():
        try:
            test_sets[direction] = read_test_set(files, reference_files, source_file, languages[direction])
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(dict.fromkeys(problems))
    warnings = list(
        dict.fromkeys(
            warning
            for test_set in test_sets.values()
            for warning in find_warnings(test_set, tokenizer_in_use(settings, test_set.language))
        )
    )
    for warning in warnings:
        warn(warning)
    scored = score_test_sets(test_sets, compared, metrics)
    return {
        **head(scored, compared, settings, metrics),
        "segments": sum(test_set.segments for test_set in test_sets.values()),
        "directions": {
            direction: {
                "segments": test_set.segments,
                "references": [text.facts() for text in test_set.references],
                "source": test_set.source.facts() if test_set.source else None,
            }
            for direction, test_set in test_sets.items()
        },
        "systems": [
            {
                "name": name,
                "baseline": compared_with(compared, name),
                "folder": folder,
                "scores": {metric: asdict(scored[metric].together[name]) for metric in metrics.names},
                "directions": {
                    direction: {
                        **test_set.hypotheses[name].facts(),
                        "scores": {
                            metric: asdict(scored[metric].by_test_set[direction][name]) for metric in metrics.names
                        },
                    }
                    for direction, test_set in test_sets.items()
                },
                "significant_directions": {
                    metric: _counts(scored[metric], name, base) if (base := compared_with(compared, name)) else None
                    for metric in metrics.names
                },
            }
            for name, folder in systems.items()
        ],
        "warnings": warnings,
    }


def input_files(
    hypotheses: Sequence[str], references: Sequence[str], source: str | None, baselines: Sequence[str]
) -> list[str]:
    """The files that `evaluate_directions` reads; none where it finds that something is wrong with them."""
    try:
        found = find_files(named(hypotheses, baselines, "folder")[0], references, source)
    except InputError:
        return []
    return [
        file
        for files, reference_files, source_file in found.values()
        for file in (*files.values(), *reference_files, *([source_file] if source_file else []))
    ]


def _counts(scored: MetricScores, system: str, baseline: str) -> dict[str, int]:
    """In how many directions a system differs significantly from the baseline."""
    differences = [
        scores[system].score - scores[baseline].score
        for scores in scored.by_test_set.values()
        if scores[system].significant
    ]
    better = sum(difference > 0 for difference in differences)
    return {"better": better, "worse": len(differences) - better, "of": len(scored.by_test_set)}


def directions_report(data: Mapping[str, Any], decimals: int = 1) -> Report:
    """The table: a row for each direction, and one for all together.

    Args:
        data: of `evaluate_directions`.
        decimals: of the scores.
    """
    compared = data["significance"] is not None
    systems = data["systems"]
    columns = [(metric, system) for metric in data["metrics"] for system in systems]
    names = {name: metric["name"] for name, metric in data["metrics"].items()}
    header = ["direction", "segments", *(f"{names[metric]} {system['name']}" for metric, system in columns)]
    rows = [
        [
            direction,
            number(facts["segments"]),
            *(
                cell(system["directions"][direction]["scores"][metric], decimals, compared)
                for metric, system in columns
            ),
        ]
        for direction, facts in data["directions"].items()
    ]
    together = [cell(system["scores"][metric], decimals, compared) for metric, system in columns]
    means = []
    for metric, system in columns:
        scores = [found["scores"][metric]["score"] for found in system["directions"].values()]
        means.append(number(sum(scores) / len(scores), decimals) + ("  " if compared else ""))
    rows += [["all together", number(data["segments"]), *together], ["mean of directions", "", *means]]
    notes = [
        "all together: as one test set, the statistics of each segment taken with the tokenizer of its direction",
        *score_notes(data),
    ]
    for system in systems:
        for metric, counts in system["significant_directions"].items():
            if counts is not None:
                significant = counts["better"] + counts["worse"]
                on_all = "" if system["scores"][metric]["significant"] else "not "
                notes.append(
                    f"{system['name']}: {names[metric]} differs significantly in {significant} of {counts['of']} "
                    f"directions ({counts['better']} better, {counts['worse']} worse), and {on_all}on all together"
                )
    return Report(header, rows, data, notes)
