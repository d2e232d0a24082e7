"""What was measured, as ``owf evaluate --json`` and ``owf benchmark --json`` wrote it, joined by the models' names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from owf_fairseq.errors import InputError
from owf_fairseq.files.json_object import Form, misfit, read_object
from owf_fairseq.files.lines import PathLike
from owf_fairseq.model_names import arch_of_name
from owf_fairseq.sharing import ARCHS, SIZES, configuration_of

ConfigurationKey = tuple[tuple[str, ...], frozenset[tuple[str, object]], float]
"""The stacks, a configuration, by the flags that it stands for, and its width as in ``relative_width``."""


@dataclass
class Ours:
    """What was measured of one model.

    Attributes:
        name: in the files.
        arch: one of ours, or None if neither the files nor the name says it.
        ffn_dim: of the shared FFN; None for the arch's own.
        parameters: a shared tensor counted once.
        scores: by metric, as ``owf evaluate`` writes them.
        tokens_per_s: at batch size 1, as ``owf benchmark`` writes it.
        speed: relative to another model's, likewise.
        scored_against, timed_against: the name of what it was compared with, its own for a baseline; None if with
            nothing.
        baseline: what the table compares it with, see ``comparisons.compare``.
        vocab_size: of the target language, where a benchmark says it.
    """

    name: str
    arch: str | None = None
    ffn_dim: int | None = None
    parameters: int | None = None
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens_per_s: dict[str, Any] | None = None
    speed: dict[str, Any] | None = None
    scored_against: str | None = None
    timed_against: str | None = None
    baseline: str | None = None
    vocab_size: int | None = None

    def learn(self, facts: Mapping[str, Any]) -> None:
        """Takes what a benchmark or an analysis says of the model itself."""
        self.parameters = facts["parameters"]
        self.vocab_size = facts.get("vocab_size")
        if facts["configuration"] is not None and _has_the_sizes_ffns(facts["arch"], facts["ffn_dims"]):
            self.arch = facts["arch"]
            self.ffn_dim = _shared_ffn_dim(facts["arch"], facts["ffn_dims"])

    @property
    def size(self) -> str | None:
        """A key of ``SIZES``."""
        return None if self.arch is None else ARCHS[self.arch][0]

    @property
    def key(self) -> ConfigurationKey | None:
        """What it has in common with its row of the paper."""
        if self.arch is None:
            return None
        size, configuration = ARCHS[self.arch]
        dim = self.ffn_dim
        if dim is None and configuration_of(self.arch).wide:
            dim = SIZES[size].wide_ffn_dim
        return configuration_key(size, configuration, dim)

    @property
    def is_individual(self) -> bool:
        """Whether it is what the others are compared with."""
        return self.arch is not None and ARCHS[self.arch][1] == "individual"


@dataclass
class Results:
    """All that the files hold.

    Attributes:
        models: by name, in the order of the files.
        evaluations, benchmarks: what the files hold.
    """

    models: dict[str, Ours] = field(default_factory=dict)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    benchmarks: list[Benchmark] = field(default_factory=list)


@dataclass(frozen=True)
class Benchmark:
    """The JSON of ``owf benchmark``, and which lengths of it are wanted."""

    data: dict[str, Any]
    lengths: str

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Of these lengths, at all batch sizes."""
        return [entry for entry in self.data["measurements"] if entry["lengths"] == self.lengths]

    @property
    def rates(self) -> dict[str, dict[str, Any] | None]:
        """tokens/s at batch size 1, by the models' names."""
        return {entry["name"]: entry["tokens_per_s"] for entry in self.entries if entry["batch_size"] == 1}


def read_results(paths: Sequence[PathLike], lengths: str | None = None) -> Results:
    """Reads JSON files of ``owf evaluate`` and ``owf benchmark``.

    Args:
        paths: of the files.
        lengths: of source and target, as in ``26/30``, whose speeds are wanted; by default the first of each benchmark.

    Raises:
        InputError: with every problem of the files.
    """
    results, problems = Results(), []
    origin: dict[tuple[str, str], str] = {}
    for path in dict.fromkeys(os.path.realpath(path) for path in paths):
        try:
            data = read_object(Path(path))
            kind = data["kind"]
            wrong = misfit(data, _FORMS[kind])
            if wrong is not None:
                problems.append(f"{path} is damaged: its `{wrong.lstrip('.')}` is missing, or no such value")
                continue
            names = [one["name"] for one in data[_NAMES_IN[kind]]]
            for name in names:
                first = origin.setdefault((kind, name), path)
                if first != path:
                    problems.append(f"{path} and {first} both hold the {kind} of '{name}': give one of them")
            if kind == "evaluation":
                _add_evaluation(results, data)
            else:
                _add_benchmark(results, Benchmark(data, lengths or data["measurements"][0]["lengths"]))
        except (InputError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            unread = isinstance(error, InputError) and isinstance(error.__cause__, OSError)
            no_result = f"{path} is not JSON of `owf evaluate --json` or `owf benchmark --json`"
            problems.append(str(error) if unread else no_result)
    if lengths is not None and not problems and not any(one.tokens_per_s for one in results.models.values()):
        problems.append(f"`--lengths` {lengths}: no benchmark among the files has it at batch size 1")
    if problems:
        raise InputError(problems)
    for model in results.models.values():
        if model.parameters is None:  # no benchmark has said which model it is
            model.arch, model.ffn_dim = arch_of_name(model.name)
    return results


_RATE = (None, {"mean": float, "sd": (None, float), "by_run": [float]})
_RATIO = (None, {"median": float})
_FORMS: dict[str, Form] = {
    "evaluation": {
        "systems": [
            {"name": str, "baseline": (None, str), "scores": {...: {"score": float, "significant": (None, bool)}}}
        ],
        "metrics": {...: {"name": str, "signature": str}},
        "significance": (None, {"level": float, "test": str, "samples": int}),
    },
    "benchmark": {
        "models": [
            {
                "name": str,
                "arch": (None, str),
                "configuration": (None, str),
                "ffn_dims": {...: (None, int, list)},
                "parameters": int,
                "precision": str,
                "baseline": (None, str),
            }
        ],
        "measurements": [
            {
                "name": str,
                "batch_size": (None, int),
                "sentences": int,
                "lengths": str,
                "tokens_per_s": _RATE,
                "ratio": _RATIO,
            },
        ],
        "settings": {"beam": int, "runs": int, "input": (None, str), "sentences": (None, int)},
        "machine": {"device": str},
    },
}
"""What is read of the files."""

_NAMES_IN = {"evaluation": "systems", "benchmark": "models"}


def _add_evaluation(results: Results, data: dict[str, Any]) -> None:
    for system in data["systems"]:
        model = results.models.setdefault(system["name"], Ours(system["name"]))
        model.scores = {metric: dict(entry) for metric, entry in system["scores"].items()}
        model.scored_against = (system["baseline"] or model.name) if data["significance"] else None
    results.evaluations.append(data)


def _add_benchmark(results: Results, benchmark: Benchmark) -> None:
    for found in benchmark.data["models"]:
        model = results.models.setdefault(found["name"], Ours(found["name"]))
        model.learn(found)
        model.timed_against = found["baseline"] or model.name
    for entry in benchmark.entries:
        if entry["batch_size"] == 1:
            model = results.models[entry["name"]]
            model.tokens_per_s, model.speed = entry["tokens_per_s"], entry["ratio"]
    results.benchmarks.append(benchmark)


def _has_the_sizes_ffns(arch: str, dims: Mapping[str, int | None]) -> bool:
    """Whether the FFNs that no layers share are as wide as the size's: the paper widens only shared ones."""
    own = [dims[stack] for stack in dims if configuration_of(arch).has_own_ffns(stack)]
    return all(dim in (None, SIZES[ARCHS[arch][0]].ffn_dim) for dim in own)


def _shared_ffn_dim(arch: str, dims: Mapping[str, int | None]) -> int | None:
    """The width of the FFN that layers share."""
    shared = [dims[stack] for stack in dims if configuration_of(arch).shares_ffn(stack)]
    return shared[0] if shared else None


def configuration_key(size: str, configuration: str, ffn_dim: int | None) -> ConfigurationKey:
    """What models of different sizes have in common that stand in the same row."""
    return (
        SIZES[size].stacks,
        frozenset(SIZES[size].configurations[configuration].flags.items()),
        relative_width(size, ffn_dim),
    )


def relative_width(size: str, ffn_dim: int | None) -> float:
    """d_ff' / ((N_enc + N_dec) d_ff), which is 1 for One Wide FFN; 0 for the size's own d_ff."""
    one = SIZES[size]
    if ffn_dim is None or ffn_dim == one.ffn_dim:
        return 0.0
    return ffn_dim / one.wide_ffn_dim
