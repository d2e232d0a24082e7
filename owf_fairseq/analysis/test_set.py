"""The models of an analysis and their test set, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from owf_fairseq.analysis.lns import neighborhood_size
from owf_fairseq.analysis.representations import CAPTURES, SUBLAYER, Pair, Stack, represent
from owf_fairseq.analysis.usable import Usable
from owf_fairseq.checkpoint import read_checkpoint
from owf_fairseq.data.recorded import find_data
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.decoding.forced import numbers
from owf_fairseq.errors import InputError, collect
from owf_fairseq.evaluation.benchmark_models import describe
from owf_fairseq.evaluation.benchmark_names import Named, read_names
from owf_fairseq.evaluation.inputs import TestSet, read_test_set
from owf_fairseq.progress import Progress
from owf_fairseq.sharing import ARCHS
from owf_fairseq.stored_model import build_model
from owf_fairseq.stored_model import describe as describe_stored

BASELINE, BENCHMARK, COMPARED, RANDOM = ROLES = ("baseline", "benchmark", "compared", "random")
"""What a model is for: all others are compared with the baseline; benchmarks are the baseline with other seeds, whose
similarity counts as 100 %; a model with the baseline's architecture and random weights is the lower bound."""


@dataclass(frozen=True)
class Settings:
    """How representations are made and compared.

    Attributes:
        capture: see ``representations.CAPTURES``.
        eos: count end-of-sentence symbols as tokens.
        debiased: the estimator of CKA.
        k: neighbours of a sentence for LNS; None for ``neighborhood_size``.
        sentences: of the test set, from its start; None for all.
        max_tokens: of a batch.
        seed: of the random weights.
        data, segmentation: see ``FairseqBackend.from_checkpoint`` and ``RecordedData.segmentation``.
        cpu: use no GPU.
    """

    capture: str = SUBLAYER
    eos: bool = True
    debiased: bool = False
    k: int | None = None
    sentences: int | None = None
    max_tokens: int = 4000
    seed: int = 1
    data: str | None = None
    segmentation: str | None = None
    cpu: bool = False

    def problems(self) -> list[str]:
        """What is wrong with the values, a sentence each, naming the flags."""
        least = [("--k", self.k, 1), ("--sentences", self.sentences, 2), ("--max-tokens", self.max_tokens, 1)]
        problems = [
            f"`{flag}` must be at least {lowest}, but is {value}"
            for flag, value, lowest in least
            if value is not None and value < lowest
        ]
        if self.capture not in CAPTURES:
            problems.append(f"`--capture` must be {' or '.join(CAPTURES)}, but is '{self.capture}'")
        return problems


@dataclass(frozen=True)
class Model:
    """A model of the analysis.

    Attributes:
        name: in tables.
        checkpoint: the path; of the random model, the baseline's.
        role: one of ``ROLES``.
        facts: as ``owf benchmark`` has them in its JSON.
        pairs: the test set as this model reads it.
    """

    name: str
    checkpoint: str
    role: str
    facts: dict[str, Any]
    pairs: list[Pair]

    def load(self, settings: Settings) -> FairseqBackend:
        """The model, ready to read sentences.

        Raises:
            InputError: it can't be loaded.
        """
        backend = FairseqBackend.from_checkpoint(self.checkpoint, settings.data, settings.cpu, packed=False)
        if self.role != RANDOM:
            return backend
        args = describe_stored(read_checkpoint(self.checkpoint, read_tensors=False), self.checkpoint).args
        state = torch.random.get_rng_state()
        torch.manual_seed(settings.seed)
        try:
            model = build_model(args, backend.source, backend.target)
        finally:
            torch.random.set_rng_state(state)
        return FairseqBackend([model], backend.source, backend.target, backend.device, packed=False, data=backend.data)

    def represent(self, settings: Settings) -> dict[str, Stack]:
        """The representations of the test set, see ``representations.represent``."""
        backend = self.load(settings)
        with Progress("sentences", len(self.pairs), label=self.name) as progress:
            return represent(
                backend.models[0],
                (backend.source, backend.target),
                self.pairs,
                capture=settings.capture,
                with_eos=settings.eos,
                max_tokens=settings.max_tokens,
                progress=progress,
            )


@dataclass(frozen=True)
class Prepared:
    """An analysis that can begin.

    Attributes:
        models: the baseline first.
        texts: source and reference.
        kept: the numbers of the sentence pairs that all models can read, from 0.
        settings: of the analysis.
    """

    models: list[Model]
    texts: TestSet
    kept: list[int]
    settings: Settings

    @property
    def k(self) -> int:
        """Neighbours of a sentence."""
        return neighborhood_size(len(self.kept)) if self.settings.k is None else self.settings.k


def prepare(
    checkpoints: Sequence[str],
    benchmarks: Sequence[str],
    source: str,
    reference: str,
    settings: Settings,
    warn: Callable[[str], None] = lambda text: None,
    problems: Sequence[str] = (),
) -> Prepared:
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
    texts = collect(problems, lambda: read_test_set({}, [reference], source))
    named = collect(problems, lambda: _named([*checkpoints, *benchmarks])) or []
    usable = Usable([] if texts is None or texts.source is None else texts.source.lines[: settings.sentences])
    models: list[Model] = []
    for number, one in enumerate(named):
        role = BASELINE if number == 0 else COMPARED if number < len(checkpoints) else BENCHMARK
        found = collect(problems, partial(_describe, one, role, texts, settings, usable))
        models += [found] if found else []
    problems += [text for model in models[1:] for text in _misplaced(models[0], model)]
    if not problems and texts is not None:
        collect(problems, lambda: usable.check(source, settings.k, settings.debiased, warn))
    if problems or texts is None:
        raise InputError(problems)
    models = [replace(model, pairs=[model.pairs[n] for n in usable.kept]) for model in models]
    first, name = models[0], "random weights"
    models.append(replace(first, name=name, role=RANDOM, facts={**first.facts, "name": name}))
    return Prepared(models, texts, usable.kept, settings)


def _misplaced(baseline: Model, model: Model) -> list[str]:
    """Why a model is no benchmark."""
    if model.role != BENCHMARK or baseline.role != BASELINE:
        return []
    if os.path.samefile(model.checkpoint, baseline.checkpoint):
        return [f"`--benchmark` {model.checkpoint} is the baseline itself: name one that was trained with another seed"]
    differing = [
        name for name in ("arch", "layers", "ffn_dims", "parameters") if model.facts[name] != baseline.facts[name]
    ]
    return [
        f"`--benchmark` {model.checkpoint} must be the baseline with another seed, but their {name} differ: "
        f"{model.facts[name]} and {baseline.facts[name]}"
        for name in differing[:1]
    ]


def _named(words: Sequence[str]) -> list[Named]:
    """The checkpoints with their names.

    Raises:
        InputError: with every word that is none.
    """
    problems = []
    for word in words:
        if word.rpartition("=")[2] in ARCHS:
            problems.append(f"{word} is an arch, which has no trained weights: name a checkpoint of fairseq-train")
        elif os.path.isdir(word.rpartition("=")[2]):
            problems.append(f"{word} is a folder: name a checkpoint of fairseq-train, as {word}/checkpoint_best.pt")
        elif os.pathsep in word and not os.path.exists(word):
            problems.append(f"{word} is an ensemble: name its models one by one, to compare them with each other")
    named = collect(problems, lambda: read_names(words)[0])
    if problems or named is None:
        raise InputError(problems)
    return named


def _describe(named: Named, role: str, texts: TestSet | None, settings: Settings, usable: Usable) -> Model:
    """A model that was named, and the test set as it reads it.

    Raises:
        InputError: with every problem of the model.
    """
    candidate = describe(named, (), 0, settings.data, needs_text=True, segmentation=settings.segmentation)
    facts = candidate.as_json("float32")
    for name in ("backend", "precision", "weights_mb"):
        del facts[name]
    recorded = find_data(read_checkpoint(named.model, read_tensors=False), named.model, settings.data)
    dictionaries, segmentation = recorded.dictionaries(), recorded.segmentation(settings.segmentation)
    lines: list[tuple[str, str]] = []
    if texts is not None and texts.source is not None:
        lines = list(zip(texts.source.lines, texts.references[0].lines, strict=True))[: settings.sentences]
    langs = (segmentation.source, segmentation.target)
    pairs = []
    for line in lines:
        one, other = (
            numbers(dictionary, segmentation.encode(text, lang).split())
            for dictionary, text, lang in zip(dictionaries, line, langs, strict=True)
        )
        pairs.append((one, other))
    usable.see(pairs, (candidate.max_source_length, candidate.max_target_length))
    return Model(named.name, named.model, role, facts, pairs)


def files_of(checkpoints: Sequence[str]) -> list[str]:
    """The paths of what was typed as ``[NAME=]CHECKPOINT``."""
    return [word if os.path.exists(word) else word.partition("=")[2] for word in checkpoints]
