"""`owf benchmark`: from models and options to measured speeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

from owf_fairseq.baselines import Baselines, choose
from owf_fairseq.data.work import cores
from owf_fairseq.decoding.backends import CTRANSLATE2
from owf_fairseq.errors import InputError, Warn, collect
from owf_fairseq.progress import Progress
from owf_fairseq.speed.benchmark_export import exported
from owf_fairseq.speed.benchmark_models import Candidate, describe_candidate
from owf_fairseq.speed.benchmark_names import Named
from owf_fairseq.speed.measurement import SpeedSetting, measure, number_of_turns
from owf_fairseq.speed.options import BenchmarkOptions
from owf_fairseq.speed.serving import Served, serve
from owf_fairseq.speed.workloads import lines_of_input, random_settings, text_settings

if TYPE_CHECKING:
    from owf_fairseq.speed.calibration import Calibration
    from owf_fairseq.speed.report import Data


def prepare_benchmark(named: Sequence[Named], flags: Sequence[str], options: BenchmarkOptions) -> list[Candidate]:
    """Looks at everything that was given, before anything that takes long.

    Raises:
        InputError: with every problem.
    """
    import torch

    from owf_fairseq.decoding.fairseq_backend import choose_device

    problems = options.problems()
    collect(problems, lambda: choose_device(options.cpu, options.fp16))
    if options.fp16 and all(one.choice.backend == CTRANSLATE2 for one in named):
        problems.append(
            "`--fp16` is for fairseq: an exported model has its own precision (`--backend ctranslate2:float16`)"
        )
    by_ctranslate2 = [one for one in named if one.choice.backend == CTRANSLATE2]
    if options.memory and by_ctranslate2 and not options.cpu and torch.cuda.is_available():
        problems.append("`--memory`: what CTranslate2 needs on a GPU can't be measured; add `--cpu`")
    names = [one.name for one in named if one not in by_ctranslate2]
    problems += [
        f"`--unpacked` {name} is none of the models that fairseq decodes: {', '.join(names)}"
        for name in options.unpacked or ()
        if name not in names
    ]
    if options.clients and names:
        problems.append(
            f"`--clients` ask models that CTranslate2 decodes (`--backend ctranslate2`), and {', '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} decoded by fairseq"
        )
    collect(problems, lambda: choose({one.short: None for one in named}, options.baseline, False))
    problems += _of_shortlists(by_ctranslate2, options)
    candidates = []
    if options.input is not None:
        problems += [
            f"`--input` needs checkpoints, which know how text is cut into pieces, but {one.model} is an arch: leave "
            "it away, or measure random sentences"
            for one in named
            if one.is_arch
        ]
        collect(problems, lambda: lines_of_input(options))
    needs_text = options.input is not None
    more = (options.vocab_size, options.data, needs_text, options.segmentation)
    for one in named:
        found = collect(problems, partial(describe_candidate, one, flags if one.is_arch else (), *more))
        candidates += [found] if found is not None else []
    for candidate in candidates if options.input is None else ():
        limits = (candidate.max_source_length, candidate.max_target_length)
        problems += [
            f"`--lengths` {source}/{target} is too long for {candidate.named.name}, which takes "
            f"{limits[0]}/{limits[1]} pieces at most"
            for source, target in options.lengths
            if source > limits[0] or target > limits[1]
        ]
    if problems:
        raise InputError(dict.fromkeys(problems))
    return candidates


def _of_shortlists(named: Sequence[Named], options: BenchmarkOptions) -> list[str]:
    """What is wrong with the flags about shortlists, for the models that CTranslate2 decodes."""
    names = [one.name for one in named]
    problems = [
        f"`--no-shortlist` {name} is none of the models that CTranslate2 decodes: {', '.join(names) or 'there is none'}"
        for name in options.no_shortlist or ()
        if name not in names
    ]
    if options.shortlist is not None and not any(one.is_arch for one in named):
        problems.append(
            "`--shortlist` is for archs that CTranslate2 decodes (`--backend ctranslate2`), and there is none: an "
            "exported model's shortlist is used unless `--no-shortlist` says otherwise"
        )
    return problems


def benchmark(candidates: Sequence[Candidate], options: BenchmarkOptions, warn: Warn) -> Data:
    """Measures.

    Args:
        candidates: see ``prepare_benchmark``.
        options: how.
        warn: is told what the user should know.

    Returns:
        What the JSON holds; ``speed_report.tables`` makes the tables of it.

    Raises:
        InputError: a model cannot be loaded, or the text has no line for all of them.
    """
    from owf_fairseq.decoding.fairseq_backend import FairseqBackend
    from owf_fairseq.doctor.installation import machine_facts
    from owf_fairseq.speed.report import Measured, as_data

    with torch_threads(options.threads), exported(candidates, options.data, options.shortlist) as candidates:
        problems: list[str] = []
        loaded = [collect(problems, partial(one.load, options.loading(one))) for one in candidates]
        backends = [backend for backend in loaded if backend is not None]
        if problems:
            raise InputError(problems)
        candidates = [
            replace(one, shortlist=getattr(backend, "shortlist", None) is not None)
            for one, backend in zip(candidates, backends, strict=True)
        ]
        settings = text_settings(backends, options, warn) if options.input else random_settings(backends, options, warn)
        calibration = calibrated(options) if options.calibrate else None
        with Progress("batches", number_of_turns(settings, options.runs)) as progress:
            measurements = measure(backends, settings, progress, options.runs, options.warmup)
        served = served_clients(candidates, settings[0], options)
        facts = machine_facts(backends[0].device_name)
        precisions = [backend.precision for backend in backends]
        unpacked = [
            one.named.name
            for one, backend in zip(candidates, backends, strict=True)
            if isinstance(backend, FairseqBackend) and not backend.packed
        ]
        del loaded, backends  # the processes that measure memory need theirs
        peaks = peaks_of(candidates, settings, options) if options.memory else ()
        compared = compared_models(candidates, options)
        measured = Measured(candidates, precisions, settings, measurements, compared, peaks, calibration, served)
        return as_data(measured, facts, {**asdict(options), "unpacked": unpacked})


def served_clients(
    candidates: Sequence[Candidate], setting: SpeedSetting, options: BenchmarkOptions
) -> list[list[Served]]:
    """For each number of clients what each model does; on a CPU it searches for as many as its cores allow."""
    if options.clients is None:
        return []
    searches = max(cores() // options.threads, 1)
    backends = [one.load(options.loading(one, searches)) for one in candidates]
    sentences = [[pieces for batch in batches for pieces in batch] for batches in setting.batches]
    passes = options.runs * len(options.clients) * len(backends)
    with Progress("passes", passes, label="clients") as progress:
        how = (options.clients, progress, options.runs, options.warmup)
        return serve(backends, sentences, setting.options, *how)


def compared_models(candidates: Sequence[Candidate], options: BenchmarkOptions) -> Baselines:
    """What each model's speed is relative to; of several backends, that of the baseline's first.

    Raises:
        InputError: a baseline is none of the models.
    """
    first: dict[str, Candidate] = {}
    for one in candidates:
        first.setdefault(one.named.short, one)
    archs = {name: one.facts.arch if one.facts.configuration else None for name, one in first.items()}
    chosen = choose(archs, options.baseline, options.by_size)
    return {one.named.name: first[chosen[one.named.short]].named.name for one in candidates}


def peaks_of(
    candidates: Sequence[Candidate], settings: Sequence[SpeedSetting], options: BenchmarkOptions
) -> list[list[int | None]]:
    """Peak memory of every model in every setting, for its largest batch; see ``memory.peak_memory``."""
    from owf_fairseq.speed.memory import peak_memory

    peaks: list[list[int | None]] = []
    with Progress("processes", len(settings) * len(candidates), label="peak memory") as progress:
        for setting in settings:
            peaks.append([])
            for candidate, batches in zip(candidates, setting.batches, strict=True):
                largest = max(batches, key=lambda batch: len(batch) * max(map(len, batch)))
                loading = options.loading(candidate)
                peaks[-1].append(peak_memory(candidate, largest, setting.options, loading))
                progress.advance(1)
    return peaks


def calibrated(options: BenchmarkOptions) -> Calibration:
    """What this machine computes and reads a second, on the threads and the device of the options.

    Raises:
        InputError: there is no such device.
    """
    from owf_fairseq.decoding.fairseq_backend import choose_device
    from owf_fairseq.speed.calibration import calibrate

    with torch_threads(options.threads):
        device = choose_device(options.cpu, options.fp16)
        return calibrate(device, options.fp16, options.beam * options.batch_sizes[0])


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Gives torch so many threads until the end."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
