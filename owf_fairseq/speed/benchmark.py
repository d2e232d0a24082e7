"""`owf benchmark`: from models and options to measured speeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from owf_fairseq.baselines import Baselines, choose
from owf_fairseq.decoding.backends import CTRANSLATE2
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.errors import InputError, Warn, collect, too_small
from owf_fairseq.files.lines import read_lines
from owf_fairseq.progress import Progress
from owf_fairseq.sharing import LARGEST_VOCABULARY
from owf_fairseq.speed.benchmark_export import exported
from owf_fairseq.speed.benchmark_models import Candidate, Loading, describe_candidate
from owf_fairseq.speed.benchmark_names import Named
from owf_fairseq.speed.measurement import SpeedSetting, cut_into_batches, draw_batches, measure, number_of_turns

if TYPE_CHECKING:
    from owf_fairseq.decoding.search import Backend
    from owf_fairseq.speed.calibration import Calibration
    from owf_fairseq.speed.report import Data


@dataclass(frozen=True)
class BenchmarkOptions:
    """What is measured, and how.

    Attributes:
        lengths: pieces of source and target, for random sentences; not looked at with ``input``.
        input: a text file to translate.
        segmentation: how it is cut into pieces, if not as recorded, see ``RecordedData.segmentation``.
        sentences: how many: at least, of random ones, because batches are full (default 10); of the text, from its
            start (default all).
        batch_sizes, beam: of the search.
        runs, warmup: see ``speed.measure``.
        threads: of a search.
        vocab_size: of archs.
        data: the folder of checkpoints' binary data, if it is not where they were trained.
        memory: measure peak memory too.
        calibrate: measure the machine too.
        unpacked: names of the models whose matrices stay as they are, as fairseq leaves them; empty for all models,
            None for none of them.
        cpu, fp16: see ``Loading``.
        backend: see ``benchmark_names.with_backends``.
        baseline, by_size: what speeds are relative to, see ``baselines.choose``.
        shortlist: symbols that translations may have, for archs that CTranslate2 decodes; None for all. Exported models
            have their own shortlists.
        no_shortlist: names of the models that decode without; empty for all models, None for none of them.
    """

    lengths: tuple[tuple[int, int], ...] = ((26, 30),)
    input: str | None = None
    segmentation: str | None = None
    sentences: int | None = None
    batch_sizes: tuple[int, ...] = (1,)
    beam: int = 5
    runs: int = 5
    warmup: int = 1
    threads: int = 1
    vocab_size: int = 32_000
    data: str | None = None
    memory: bool = False
    calibrate: bool = False
    cpu: bool = False
    fp16: bool = False
    unpacked: tuple[str, ...] | None = None
    backend: tuple[str, ...] = ()
    baseline: tuple[str, ...] = ()
    by_size: bool = False
    shortlist: int | None = None
    no_shortlist: tuple[str, ...] | None = None

    def loading(self, model: Candidate) -> Loading:
        """How a model is loaded."""
        left = self.unpacked is not None and (not self.unpacked or model.named.name in self.unpacked)
        without = self.no_shortlist is not None and (not self.no_shortlist or model.named.name in self.no_shortlist)
        return Loading(self.data, self.cpu, self.fp16, not left, self.threads, use_shortlist=not without)

    def problems(self) -> list[str]:
        """What is wrong with the numbers, a sentence each, naming the flags."""
        least = {"sentences": 1, "beam": 1, "runs": 1, "warmup": 0, "threads": 1, "vocab_size": 5, "shortlist": 5}
        problems = [
            problem
            for name, smallest in least.items()
            for problem in too_small(f"--{name.replace('_', '-')}", getattr(self, name), smallest)
        ]
        most = {"threads": 1_024, "beam": 10_000, "vocab_size": LARGEST_VOCABULARY}
        problems += [
            f"`--{name.replace('_', '-')}` must be at most {largest:,}, but is {value:,}"
            for name, largest in most.items()
            if (value := getattr(self, name)) is not None and value > largest
        ]
        problems += [f"`--batch-sizes` must be at least 1, but one is {size}" for size in self.batch_sizes if size < 1]
        problems += [
            f"`--lengths` must be at least 1/1, but one is {source}/{target}"
            for source, target in self.lengths
            if min(source, target) < 1
        ]
        return problems


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
        collect(problems, lambda: _text(options))
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
        measured = Measured(candidates, precisions, settings, measurements, compared, peaks, calibration)
        return as_data(measured, facts, {**asdict(options), "unpacked": unpacked})


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


def random_settings(backends: Sequence[Backend], options: BenchmarkOptions, warn: Warn) -> list[SpeedSetting]:
    """Random sentences of equal length, and targets of a fixed one, for all pairs of lengths and all batch sizes."""
    if any(backend.source_symbols != backends[0].source_symbols for backend in backends):
        warn(
            "the models have different vocabularies: their random sentences have the same lengths, but not the same "
            "pieces"
        )
    settings = []
    for source, target in options.lengths:
        search = SearchOptions(beam=options.beam, max_len_a=0.0, max_len_b=target, min_len=target)
        for batch_size in options.batch_sizes:
            number = -(-(options.sentences or _RANDOM_SENTENCES) // batch_size)
            drawn = [draw_batches(backend.source_symbols, source, batch_size, number) for backend in backends]
            settings.append(SpeedSetting(batch_size, search, drawn, (source, target)))
    return settings


_RANDOM_SENTENCES = 10


def text_settings(backends: Sequence[Backend], options: BenchmarkOptions, warn: Warn) -> list[SpeedSetting]:
    """The sentences of the text, those of like length together, for all batch sizes.

    Raises:
        InputError: none is left.
    """
    lines = _text(options)
    encoded: list[list[list[str]]] = []
    for backend in backends:
        segmentation = backend.segmentation(options.segmentation)
        encoded.append([segmentation.encode(line).split() for line in lines])
    limits = [backend.max_source_length for backend in backends]
    kept = [
        pieces
        for pieces in zip(*encoded, strict=True)
        if all(0 < len(own) <= limit for own, limit in zip(pieces, limits, strict=True))
    ]
    if not kept:
        raise InputError(f"`--input` {options.input} has no line with 1 to {min(limits)} pieces")
    if len(kept) < len(lines):
        warn(f"{len(lines) - len(kept)} of {len(lines)} lines are blank or too long for a model, and are left out")
    if any(own != pieces[0] for pieces in kept for own in pieces):
        warn("the models cut the text into different pieces: their tokens/s are of different tokens")
    of_models = [list(own) for own in zip(*kept, strict=True)]
    search = SearchOptions(beam=options.beam)
    return [SpeedSetting(size, search, cut_into_batches(of_models, size)) for size in options.batch_sizes]


def _text(options: BenchmarkOptions) -> list[str]:
    assert options.input is not None
    return read_lines(options.input)[: options.sentences]


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
