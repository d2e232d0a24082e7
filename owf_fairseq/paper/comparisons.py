"""What each row of a table is compared with, and the sentences under the table that say so.

As in the paper, a model that is in one of its rows is compared with the individual model of its own size, whatever the
commands were told; one that is in none, as they were told.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from owf_fairseq.baselines import described, individual_models
from owf_fairseq.paper.results import Benchmark, Ours, Results
from owf_fairseq.scoring.seeds import seed_notes
from owf_fairseq.tables import DAGGER


def compare(results: Results, rows: Collection[str]) -> tuple[dict[str, Ours], list[str]]:
    """Puts every number into relation to the model's own baseline.

    Args:
        results: ours, which stay as they are.
        rows: the names of the models that are in a row of the paper's table.

    Returns:
        The models by name: without what says that a score differs from another model's than the baseline's, and with
        the speed relative to the baseline's, run by run, if both took turns in one benchmark. And notes on the scores.
    """
    individual = individual_models({name: model.arch for name, model in results.models.items()})
    found, wrong = {}, []
    for name, model in results.models.items():
        if name not in rows:
            found[name] = replace(model, baseline=model.timed_against or model.scored_against or individual.get(name))
            continue
        baseline = _own_baseline(model, results, individual)
        scores, speed = model.scores, model.speed
        if model.scored_against not in (None, baseline):
            scores = {metric: {**entry, "significant": None} for metric, entry in scores.items()}
            if baseline != name:
                own = baseline or "the individual model of its size, which is not here"
                wrong.append(f"no {DAGGER}: {name} was compared with {model.scored_against}, and not with {own}")
        if model.timed_against not in (None, baseline):
            by_run = next((ratios(one.rates[name], one.rates.get(str(baseline))) for one in _with(results, name)), [])
            speed = {"median": statistics.median(by_run), "by_run": by_run} if by_run else None
        found[name] = replace(model, baseline=baseline, scores=scores, speed=speed)
    return found, [*_about_scores(results, found), *wrong]


def _own_baseline(model: Ours, results: Results, individual: Mapping[str, str]) -> str | None:
    """The individual model of its size: of several, the one that it was compared with."""
    recorded = [name for name in (model.scored_against, model.timed_against) if name is not None]
    for name in recorded:
        other = results.models.get(name)
        if other is not None and other.is_individual and other.size == model.size:
            return name
    if model.size is not None:
        return individual.get(model.name)
    return next(iter(recorded), None)


def _with(results: Results, name: str) -> list[Benchmark]:
    return [one for one in results.benchmarks if name in one.rates]


def ratios(rate: Mapping[str, Any] | None, base: Mapping[str, Any] | None) -> list[float]:
    """One speed relative to another, run by run; both as ``owf benchmark`` writes them; empty if one is missing."""
    if rate is None or base is None:
        return []
    return [ours / theirs for ours, theirs in zip(rate["by_run"], base["by_run"], strict=False) if theirs]


def _about_scores(results: Results, models: Mapping[str, Ours]) -> list[str]:
    """The metrics, and what the daggers mean."""
    notes = []
    for data in results.evaluations:
        shown = {}
        for system in data["systems"]:
            name, model = system["name"], models[system["name"]]
            if any(entry["significant"] is not None for entry in model.scores.values()):
                shown[name] = model.scored_against
                for metric, counts in _significant_directions(system).items():
                    notes.append(f"{name}: {metric} differs significantly in {counts}")
        notes += [f"{metric['name']}: {metric['signature']}" for metric in data["metrics"].values()]
        first = next(iter(data["metrics"]), "")
        notes += seed_notes({system["name"]: system["scores"].get(first, {}) for system in data["systems"]})
        test = data["significance"]
        if test is not None and shown:
            what = f"{test['test']} of {test['source']}" if "source" in test else test["test"]
            notes.append(
                f"{DAGGER}: differs from {described(_others(shown))} at p < {test['level']} ({what}, "
                f"{test['samples']:,} samples); in the paper, from its individual model at p < 0.05"
            )
    return notes


def _significant_directions(system: Mapping[str, Any]) -> dict[str, str]:
    counts = {}
    directions = system.get("directions", {})
    for metric in system["scores"] if directions else ():
        entries = [found["scores"][metric] for found in directions.values()]
        if any(entry["p_value"] is not None for entry in entries):
            counts[metric] = f"{sum(bool(entry['significant']) for entry in entries)} of {len(entries)} directions"
    return counts


def about_speeds(benchmarks: Sequence[Benchmark]) -> list[str]:
    """How they were measured: on what, how much of it, and in which precision."""
    notes = []
    for benchmark in benchmarks:
        settings, data = benchmark.data["settings"], benchmark.data
        number = max((entry["sentences"] for entry in benchmark.entries), default=0)
        if settings["input"] is None:
            what = f"{number:,} random sentences"
        else:
            extent = "all" if settings["sentences"] is None else "a sample, the first"
            what = f"{extent} {number:,} sentences of {os.path.basename(settings['input'])}"
        precisions = " and ".join(dict.fromkeys(model["precision"] for model in data["models"]))
        notes.append(
            f"{what}, pieces of source/target {benchmark.lengths}, beam {settings['beam']}, {precisions}, "
            f"{data['machine']['device']}, mean ± standard deviation of {settings['runs']} runs"
        )
    return notes


def about_baselines(models: Mapping[str, Ours]) -> list[str]:
    """What speed and parameters are relative to, if there are speeds."""
    compared = {name: model.baseline for name, model in models.items() if model.speed and model.baseline}
    return [f"speed and parameters, %: relative to {described(_others(compared))}"] if compared else []


def _others(compared: Mapping[str, str | None]) -> dict[str, str | None]:
    """None for a baseline, in place of its own name."""
    return {name: None if baseline == name else baseline for name, baseline in compared.items()}
