"""Everything that an analysis needs, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from owf_fairseq.analysis.lns import neighborhood_size
from owf_fairseq.analysis.models import BASELINE, BENCHMARK, COMPARED, RANDOM, RANDOM_NAME, Model, read
from owf_fairseq.analysis.settings import AnalysisSettings
from owf_fairseq.analysis.usable import Usable
from owf_fairseq.errors import InputError, Warn, collect
from owf_fairseq.model_names import name_models
from owf_fairseq.scoring.inputs import TestSet, read_test_set
from owf_fairseq.sharing import ARCHS

RESERVED = (RANDOM_NAME, BENCHMARK)
"""Names that tables and pictures have for something else."""


@dataclass(frozen=True)
class PreparedAnalysis:
    """An analysis that can begin.

    Attributes:
        models: the baseline first, the random one last.
        texts: source and reference.
        kept: the numbers of the sentence pairs that all models can read, from 0.
        settings: of the analysis.
    """

    models: list[Model]
    texts: TestSet
    kept: list[int]
    settings: AnalysisSettings

    @property
    def k(self) -> int:
        """Neighbours of a sentence."""
        return neighborhood_size(len(self.kept)) if self.settings.k is None else self.settings.k


def prepare_analysis(
    checkpoints: Sequence[str],
    benchmarks: Sequence[str],
    source: str,
    reference: str,
    settings: AnalysisSettings,
    warn: Warn = lambda text: None,
    problems: Sequence[str] = (),
) -> PreparedAnalysis:
    """Looks at everything that was given.

    Args:
        checkpoints: ``[NAME=]CHECKPOINT``; the first one is the baseline.
        benchmarks: likewise, the baseline with other seeds.
        source, reference: the test set's files.
        settings: of the analysis.
        warn: is told which pairs can't be used.
        problems: that were found before.

    Raises:
        InputError: with every problem of the models, the texts and the settings.
    """
    problems = [*problems, *settings.problems()]
    if os.path.exists(source) and os.path.exists(reference) and os.path.samefile(source, reference):
        problems.append(f"`--src` and `--ref` are one file, {source}: name the translation as well")
    texts = collect(problems, lambda: read_test_set({}, [reference], source))
    lines: list[tuple[str, str]] = []
    if texts is not None and texts.source is not None:
        lines = list(zip(texts.source.lines, texts.references[0].lines, strict=True))[: settings.sentences]
    named = collect(problems, lambda: _named([*checkpoints, *benchmarks])) or []
    models: list[Model] = []
    for number, (name, path) in enumerate(named):
        role = BASELINE if number == 0 else COMPARED if number < len(checkpoints) else BENCHMARK
        found = collect(problems, partial(read, name, path, role, lines, settings))
        models += [found] if found else []
    usable = Usable(len(lines))
    for model in models:
        usable.see(model.pairs, model.longest)
    if models and models[0].role == BASELINE:
        problems += [text for model in models[1:] for text in _misplaced(models[0], model)]
        problems += _same_seeds(models, settings)
    if not problems:
        collect(problems, lambda: usable.check(source, settings.k, settings.debiased, warn))
    if problems or texts is None:
        raise InputError(problems)
    kept = usable.kept
    models = [replace(model, pairs=[model.pairs[n] for n in kept]) for model in models]
    return PreparedAnalysis([*models, _random(models, settings)], texts, kept, settings)


def doubts(prepared: PreparedAnalysis) -> list[str]:
    """What makes the numbers of a comparison doubtful, a sentence each."""
    baseline, *others = prepared.models[:-1]
    found = []
    widest = max(model.dimensions for model in prepared.models)
    if len(prepared.kept) <= widest and not prepared.settings.debiased:
        found.append(
            f"{len(prepared.kept):,} sentences are not more than the {widest:,} dimensions of the representations, so "
            "that CKA is too high for any two of them: take more sentences, or `--debiased`"
        )
    for model in others:
        if baseline.seed is None or model.seed != baseline.seed:
            continue
        found.append(
            f"{model.name} was trained with the seed of {baseline.name}, {baseline.seed}: models that began with the "
            "same weights stay more alike than others, also where they are no more alike in what they learnt"
        )
    return found


def _random(models: Sequence[Model], settings: AnalysisSettings) -> Model:
    """The lower bound: with a seed that no model began with, or a model would be compared with its own beginning."""
    seeds = {model.seed for model in models}
    seed = next(n for n in range(1000, 2000) if n not in seeds) if settings.seed is None else settings.seed
    facts = {**models[0].facts, "name": RANDOM_NAME, "checkpoint": None, "seed": seed}
    return replace(models[0], name=RANDOM_NAME, role=RANDOM, facts=facts)


def _named(words: Sequence[str]) -> list[tuple[str, str]]:
    """Names and paths of checkpoints.

    Raises:
        InputError: with every word that is none.
    """
    problems: list[str] = []
    named = collect(problems, lambda: name_models(words)) or []
    for name, path in named:
        if path in ARCHS:
            problems.append(f"{path} is an arch, which has no trained weights: name a checkpoint of fairseq-train")
        elif os.path.isdir(path):
            problems.append(f"{path} is a folder: name a checkpoint of fairseq-train, as {path}/checkpoint_best.pt")
        elif os.pathsep in path and not os.path.exists(path):
            problems.append(f"{path} is an ensemble: name its models one by one, to compare them with each other")
        elif not os.path.isfile(path):
            problems.append(f"there is no checkpoint {path}")
        if name.lower() in RESERVED:
            problems.append(f"'{name}' is what something else is called in the tables: give {path} another name")
    if problems:
        raise InputError(problems)
    return named


def _misplaced(baseline: Model, model: Model) -> list[str]:
    """Why a model can't be compared with the baseline, or is no benchmark."""
    langs, others = (one.facts["langs"] for one in (baseline, model))
    if langs != others:
        return [
            f"{model.checkpoint} translates {'-'.join(others)}, and the baseline {'-'.join(langs)}: models of one "
            "direction can be compared"
        ]
    if model.role != BENCHMARK:
        return []
    differing = [
        name
        for name in ("arch", "layers", "ffn_dims", "flags", "parameters")
        if model.facts[name] != baseline.facts[name]
    ]
    return [
        f"`--benchmark` {model.checkpoint} must be the baseline with another seed, but their {name} differ: "
        f"{model.facts[name]} and {baseline.facts[name]}"
        for name in differing[:1]
    ]


def _same_seeds(models: Sequence[Model], settings: AnalysisSettings) -> list[str]:
    """Trainings that began alike, where the numbers would say nothing."""
    problems = []
    for number, model in enumerate(models):
        for other in models[:number] if model.role == BENCHMARK else ():
            what = "the baseline" if other.role == BASELINE else other.name
            if os.path.samefile(model.checkpoint, other.checkpoint):
                what += " itself"
            elif other.role == COMPARED or model.seed is None or model.seed != other.seed:
                continue
            else:
                what = f"of the seed of {what}, {model.seed}"
            problems.append(f"`--benchmark` {model.checkpoint} is {what}: name one that was trained with another seed")
    if settings.seed is not None and settings.seed == models[0].seed:
        problems.append(
            f"`--seed` {settings.seed} is what the baseline began with: it would be compared with its own beginning"
        )
    return problems
