"""What is decoded in each row of a benchmark: random sentences with targets of one length, or the lines of a text."""

from __future__ import annotations

from collections.abc import Sequence

from owf_fairseq.decoding.search import Backend, SearchOptions
from owf_fairseq.errors import InputError, Warn
from owf_fairseq.files.lines import read_lines
from owf_fairseq.speed.measurement import SpeedSetting, cut_into_batches, draw_batches
from owf_fairseq.speed.options import BenchmarkOptions


def random_settings(backends: Sequence[Backend], options: BenchmarkOptions, warn: Warn) -> list[SpeedSetting]:
    """Random sentences of equal length, and targets of a fixed one, for all lengths and all sizes of batches."""
    if any(backend.source_symbols != backends[0].source_symbols for backend in backends):
        warn(
            "the models have different vocabularies: their random sentences have the same lengths, but not the same "
            "pieces"
        )
    settings = []
    for source, target in options.lengths:
        search = SearchOptions(beam=options.beam, max_len_a=0.0, max_len_b=target, min_len=target)
        sizes = options.batch_sizes
        if options.max_tokens is not None:
            sizes = (max(options.max_tokens // (source + 1), 1),)
        for batch_size in sizes:
            number = -(-(options.sentences or _RANDOM_SENTENCES) // batch_size)
            drawn = [draw_batches(backend.source_symbols, source, batch_size, number) for backend in backends]
            named = batch_size if options.max_tokens is None else None
            settings.append(SpeedSetting(named, search, drawn, (source, target), options.max_tokens))
    return settings


_RANDOM_SENTENCES = 10


def text_settings(backends: Sequence[Backend], options: BenchmarkOptions, warn: Warn) -> list[SpeedSetting]:
    """The sentences of the text, those of like length together, for all sizes of batches.

    Raises:
        InputError: none is left.
    """
    lines = lines_of_input(options)
    encoded: list[list[list[str]]] = []
    for backend in backends:
        segmentation = backend.segmentation(options.segmentation)
        encoded.append([segmentation.encode(line).split() for line in lines])
    limits = [backend.max_source_length for backend in backends]
    words, kept = 0, []
    for line, *pieces in zip(lines, *encoded, strict=True):
        if all(0 < len(own) <= limit for own, limit in zip(pieces, limits, strict=True)):
            kept.append(pieces)
            words += len(line.split())
    if not kept:
        raise InputError(f"`--input` {options.input} has no line with 1 to {min(limits)} pieces")
    if len(kept) < len(lines):
        warn(f"{len(lines) - len(kept)} of {len(lines)} lines are blank or too long for a model, and are left out")
    if any(own != pieces[0] for pieces in kept for own in pieces):
        warn("the models cut the text into different pieces: their tokens/s are of different tokens")
    of_models = [list(own) for own in zip(*kept, strict=True)]
    search = SearchOptions(beam=options.beam)
    if options.max_tokens is not None:
        batches = cut_into_batches(of_models, max_tokens=options.max_tokens)
        return [SpeedSetting(None, search, batches, None, options.max_tokens, words)]
    return [
        SpeedSetting(size, search, cut_into_batches(of_models, size), None, None, words) for size in options.batch_sizes
    ]


def lines_of_input(options: BenchmarkOptions) -> list[str]:
    """Those of ``--input`` that are wanted."""
    assert options.input is not None
    return read_lines(options.input)[: options.sentences]
