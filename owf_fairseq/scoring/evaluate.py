"""Scores of systems on one test set or several, their significance, and the report of both."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from owf_fairseq import __version__
from owf_fairseq.baselines import Baselines, choose, compared_with, described
from owf_fairseq.errors import InputError, Warn, collect
from owf_fairseq.model_names import arch_of_name
from owf_fairseq.progress import Progress
from owf_fairseq.scoring.checks import find_warnings
from owf_fairseq.scoring.inputs import TestSet, name_systems, read_test_set, unnamed_systems
from owf_fairseq.scoring.metrics import METRICS, Metric, Metrics, MetricSettings, Statistics, bleu_tokenizer
from owf_fairseq.scoring.seeds import SEEDS_TEST, Runs, group_runs, score_configurations, seed_notes
from owf_fairseq.scoring.significance import LEVEL, SystemScore, score_systems
from owf_fairseq.tables import DAGGER, Report, number, with_deviation

EVALUATION_KIND = "evaluation"
"""What the JSON says that it is."""


def evaluate(
    hypotheses: Sequence[str],
    references: Sequence[str],
    source: str | None = None,
    *,
    baselines: Sequence[str] = (),
    sizes: bool = False,
    seeds: bool = False,
    language: str | None = None,
    settings: MetricSettings | None = None,
    warn: Warn = print,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Scores hypotheses of one test set.

    Args:
        hypotheses: files, each a path or ``NAME=PATH``.
        references: files; BLEU and chrF take all at once, COMET's score is the mean over them. None for COMET alone,
            with a model that is reference-free.
        source: file; COMET needs it.
        baselines: names or paths of systems; each is compared with the last of them that stands before it.
        sizes: without baselines, compare each with the individual model of its own size, as the names say it.
        seeds: whether ``NAME_seed_N`` are runs of one configuration, which makes one system; baselines are names of
            configurations then.
        language: of the target side, for BLEU's tokenizer.
        settings: the metrics and their settings.
        warn: is told what looks wrong, before anything is fetched or scored.
        problems: that the caller has found, to be reported with those found here.

    Returns:
        What ``--json`` writes; the scores are not rounded.

    Raises:
        InputError: with every problem of the files, the metrics and what they need.
    """
    settings = settings or MetricSettings()
    metrics = Metrics(settings)
    problems = list(problems)
    runs: Runs = {}
    if seeds:
        paths, runs, compared = collect(problems, lambda: named_runs(hypotheses, baselines, sizes)) or (
            unnamed_systems(hypotheses),
            {},
            {},
        )
    else:
        how = (baselines, "file", sizes)
        paths, compared = collect(problems, lambda: named(hypotheses, *how)) or (unnamed_systems(hypotheses), {})
    test_set = collect(problems, lambda: read_test_set(paths, references, source, language))
    problems += metrics.check([language], has_source=source is not None)
    if not references and set(metrics.names) != {"comet"}:
        problems.append(
            "`--ref` is missing: only COMET's reference-free models do without (`--metrics comet --comet-model MODEL`)"
        )
    if problems or test_set is None:
        raise InputError(problems)
    warnings = find_warnings(test_set, tokenizer_in_use(settings, language))
    for warning in warnings:
        warn(warning)
    scored = score_test_sets({"": test_set}, compared, metrics, runs)
    texts = test_set.hypotheses
    facts: dict[str, dict[str, Any]] = {name: text.facts() for name, text in texts.items()}
    if seeds:
        facts = {name: {"runs": [{"name": run, **facts[run]} for run in members]} for name, members in runs.items()}
    return {
        **head(scored, compared, settings, metrics, seeds),
        "target_language": language,
        "segments": test_set.segments,
        "references": [text.facts() for text in test_set.references],
        "source": test_set.source.facts() if test_set.source else None,
        "systems": [
            {
                "name": name,
                "baseline": compared_with(compared, name),
                **own,
                "scores": {metric: asdict(scored[metric].together[name]) for metric in metrics.names},
            }
            for name, own in facts.items()
        ],
        "warnings": warnings,
    }


def named(
    hypotheses: Sequence[str], baselines: Sequence[str] = (), kind: str = "file", sizes: bool = False
) -> tuple[dict[str, str], Baselines]:
    """`name_systems` of at least one hypothesis.

    Raises:
        InputError: there is none, two have one name, or a baseline is not there.
    """
    if not hypotheses:
        raise InputError(
            "name at least one hypothesis: a flag such as `--ref` takes every name up to the next flag, so put the "
            "hypotheses before the flags, or after `--`"
        )
    return name_systems(hypotheses, baselines, kind, sizes)


def named_runs(
    hypotheses: Sequence[str], baselines: Sequence[str] = (), sizes: bool = False
) -> tuple[dict[str, str], Runs, Baselines]:
    """The path of every run by its name, the runs of every configuration, and what each configuration is compared with.

    Raises:
        InputError: as `named` does; a baseline is none of the configurations.
    """
    paths, _ = named(hypotheses)
    runs = group_runs([*paths])
    archs = {name: arch_of_name(name)[0] for name in runs}
    return paths, runs, choose(archs, baselines, sizes) if baselines or sizes else {}


@dataclass(frozen=True)
class MetricScores:
    """One metric's scores, by system.

    Attributes:
        by_test_set: of each test set.
        together: of all test sets as one, each segment with the metric as it is for its test set.
        signature: sacreBLEU's; settings that differ between test sets are all in it.
    """

    by_test_set: dict[str, dict[str, SystemScore]]
    together: dict[str, SystemScore]
    signature: str


def score_test_sets(
    test_sets: Mapping[str, TestSet], baselines: Mapping[str, str], metrics: Metrics, runs: Runs | None = None
) -> dict[str, MetricScores]:
    """Scores all systems on all test sets.

    Args:
        test_sets: with the same systems each.
        baselines: of them, see `baselines.Baselines`; empty to compare none.
        metrics: that `Metrics.check` has found to be there.
        runs: of configurations, which the scores are of then; of systems without.

    Returns:
        By metric.

    Raises:
        InputError: what a metric needs can't be fetched or loaded.
    """
    metrics.prepare(
        [test_set.language for test_set in test_sets.values()],
        has_references=all(test_set.references for test_set in test_sets.values()),
    )
    samples = metrics.settings.samples

    def score(metric: Metric, statistics: Mapping[str, Statistics]) -> tuple[dict[str, SystemScore], Any]:
        if runs:
            return score_configurations(metric, statistics, runs, baselines, samples)
        return score_systems(metric, statistics, baselines, samples)

    work = sum(
        test_set.segments * len(test_set.hypotheses) * (len(test_set.references) or 1 if metric == "comet" else 1)
        for test_set in test_sets.values()
        for metric in metrics.names
    )
    scored = {}
    with Progress("segments", work, label="scoring") as progress:
        for metric in metrics.names:
            by_test_set, signatures = {}, []
            everything: dict[str, list[Sequence[float]]] = {}
            for name, test_set in test_sets.items():
                bound = metrics.bind(metric, test_set, progress.advance)
                statistics: dict[str, Statistics] = {}
                for system, text in test_set.hypotheses.items():
                    statistics[system] = bound._extract_corpus_statistics(text.lines, None)
                    if metric != "comet":
                        progress.advance(test_set.segments, f"{METRICS[metric]} {name}".strip())
                    everything.setdefault(system, []).extend(statistics[system])
                by_test_set[name], signature = score(bound, statistics)
                signatures.append(signature)
            together = next(iter(by_test_set.values()))
            if len(test_sets) > 1:
                together, _ = score(bound, everything)
            scored[metric] = MetricScores(by_test_set, together, _joint_signature(signatures))
    return scored


def _joint_signature(signatures: Sequence[Any]) -> str:
    """The signature of several test sets together."""
    joint = signatures[0]
    for key in joint.info:
        values = dict.fromkeys(str(signature.info[key]) for signature in signatures)
        if len(values) > 1:
            joint.update(key, ",".join(sorted(values)))
    return str(joint)


def tokenizer_in_use(settings: MetricSettings, language: str | None) -> str | None:
    """BLEU's tokenizer, None if BLEU is not among the metrics."""
    return (settings.tokenize or bleu_tokenizer(language)) if "bleu" in settings.metrics else None


def head(
    scored: Mapping[str, MetricScores],
    baselines: Mapping[str, str],
    settings: MetricSettings,
    metrics: Metrics,
    seeds: bool = False,
) -> dict[str, Any]:
    """What the JSON of every evaluation begins with."""
    test = SEEDS_TEST if seeds else {"test": "paired bootstrap resampling"}
    significance = {**test, "level": LEVEL, "samples": settings.samples}
    return {
        "kind": EVALUATION_KIND,
        "versions": versions("comet" in metrics.names),
        "metrics": {
            name: {"name": METRICS[name], "signature": scored[name].signature, **metrics.facts(name)}
            for name in metrics.names
        },
        "significance": significance if baselines else None,
    }


def versions(comet: bool) -> dict[str, str]:
    """Of everything that scores depend on."""
    names = ["sacrebleu", "numpy", *(["unbabel-comet", "torch", "transformers"] if comet else [])]
    found = {name: importlib.metadata.version(name) for name in names}
    return {"owf_fairseq": __version__, "python": platform.python_version(), **found}


def evaluation_report(data: Mapping[str, Any], decimals: int = 1) -> Report:
    """The table of one test set.

    Args:
        data: of `evaluate`.
        decimals: of the scores.
    """
    compared = data["significance"] is not None
    header = ["system"]
    for metric in data["metrics"].values():
        header += [metric["name"], "95% CI", "p"] if compared else [metric["name"]]
    rows = []
    for system in data["systems"]:
        row = [system["name"]]
        for metric in data["metrics"]:
            entry = system["scores"][metric]
            row.append(cell(entry, decimals, compared))
            if compared:
                row += [f"± {number(entry['ci95'], decimals)}", number(entry["p_value"], 4)]
        rows.append(row)
    references = " and ".join(text["file"] for text in data["references"])
    notes = [f"{data['segments']:,} segments, {references or 'no reference'}"]
    return Report(header, rows, data, [*notes, *score_notes(data)])


def cell(entry: Mapping[str, Any], decimals: int, compared: bool) -> str:
    """A score, with the dagger or as much space behind it."""
    mark = f" {DAGGER}" if entry["significant"] else "  "
    return with_deviation(entry["score"], entry.get("sd"), decimals) + (mark if compared else "")


def score_notes(data: Mapping[str, Any]) -> list[str]:
    """What the scores are: the signatures, and the test."""
    notes = [f"{metric['name']}: {metric['signature']}" for metric in data["metrics"].values()]
    first = next(iter(data["metrics"]))
    notes += seed_notes({system["name"]: system["scores"][first] for system in data["systems"]})
    comet = data["metrics"].get("comet")
    if comet:
        each = ", each the mean over the references" if "refs:mean" in comet["signature"] else ""
        without = "" if comet["uses_references"] else ", which this model finds without the references"
        notes.append(f"COMET: 100 times the mean of the segments' scores{each}{without}")
    test = data["significance"]
    if test is not None:
        source = test.get("source", "Koehn, 2004")
        compared = described({system["name"]: system["baseline"] for system in data["systems"]})
        notes.append(
            f"{DAGGER}: differs from {compared}, p < {test['level']}, by {test['test']} ({source}) of "
            f"{test['samples']:,} samples"
        )
    return notes
