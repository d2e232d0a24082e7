"""`owf distill`: a teacher's translations as a student's training data."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from owf_fairseq.cli._decoding import BUFFER, add_backend, add_batches, add_data, add_device, add_search, paths_of

if TYPE_CHECKING:
    from owf_fairseq.distillation.distill import Distilled

HELP = "translate training text with a teacher, for a student to learn from"
EXAMPLE = (
    "owf distill runs/teacher/int8 --train corpus/train --langs en-de --output distilled/train\n"
    "owf distill runs/a/checkpoint_best.pt runs/b/checkpoint_best.pt --train corpus/train --langs en-de --pick top \\\n"
    "    --monolingual news.en --output distilled/train --json distilled/report.json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.description = (
        f"{HELP} (sequence-level distillation, Kim and\nRush, 2016). Writes PREFIX.SRC and PREFIX.TGT, line n of one "
        "for line n of the other, which `owf prepare --like`\ntakes. A teacher that `owf export --quantization int8` "
        "exported is by far the fastest on CPUs. Pairs that a student\nshould not learn from are left out, counted and "
        "reported. After an interruption, the same command goes on where it\nwas."
    )
    parser.add_argument(
        "teacher",
        nargs="+",
        metavar="TEACHER",
        help="a checkpoint of fairseq-train, several, which decode as an ensemble, or a folder that `owf export` made",
    )
    add_backend(parser)
    text = parser.add_argument_group("text")
    text.add_argument("--train", metavar="PREFIX", help="parallel text, PREFIX.SRC and PREFIX.TGT")
    text.add_argument(
        "--monolingual", nargs="+", default=[], metavar="FILE", help="text in the source language, without references"
    )
    text.add_argument("--langs", required=True, metavar="SRC-TGT", help="languages, as in en-de")
    text.add_argument("--output", required=True, metavar="PREFIX", help="PREFIX.SRC and PREFIX.TGT are written")
    text.add_argument("--json", metavar="FILE", help="write what is reported as JSON")
    text.add_argument("--overwrite", action="store_true", help="replace the files, whatever they are")
    add_data(text)
    choice = parser.add_argument_group("what is taken")
    choice.add_argument(
        "--pick",
        choices=("best", "top"),
        default="best",
        help="of a line's translations the one that is nearest to its reference (default), or the most probable one, "
        "which is also taken where there is no reference",
    )
    choice.add_argument(
        "--metric", choices=("chrf", "bleu"), default="chrf", help="what says how near, for a sentence (default: chrf)"
    )
    choice.add_argument(
        "--nbest", type=int, metavar="N", help="translations that `--pick best` picks from (default: --beam)"
    )
    choice.add_argument(
        "--max-ratio",
        type=float,
        default=3.0,
        metavar="X",
        help="leave out translations with more than X times (default: 3) the pieces of their source, plus 5, and such "
        "with as much less",
    )
    choice.add_argument(
        "--keep-copies",
        action="store_true",
        help="keep translations that are their sources (default: only if the reference is it too)",
    )
    search = parser.add_argument_group("search")
    add_search(search)
    speed = parser.add_argument_group("batches and device")
    add_batches(speed)
    speed.add_argument(
        "--buffer-size",
        type=int,
        default=BUFFER,
        metavar="N",
        help="lines that are sorted and written together, and that an interruption loses (default: 10000)",
    )
    speed.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="searches on a CPU, and processes that pick, at the same time (default: one for each core); fairseq "
        "decodes on all cores in any case",
    )
    add_device(speed)


def run(args: argparse.Namespace) -> int:
    """Translates, and says what was left out."""
    from pathlib import Path

    from owf_fairseq.data.work import Workers, cores
    from owf_fairseq.decoding.backends import backend_of, load_backend
    from owf_fairseq.decoding.search import SearchOptions
    from owf_fairseq.decoding.translator import Batching, Translator
    from owf_fairseq.distillation.distill import COMMAND, DISTILLATION, Distillation, distill, report_lines
    from owf_fairseq.distillation.filtering import Filter
    from owf_fairseq.distillation.picking import Picker, sentence_metric
    from owf_fairseq.distillation.sources import check_languages, find_sources, languages_of
    from owf_fairseq.errors import InputError, collect, too_small
    from owf_fairseq.files.job import Job, OutputFile
    from owf_fairseq.files.outputs import write_output
    from owf_fairseq.progress import Progress

    teacher = os.pathsep.join(args.teacher)
    langs = languages_of(args.langs, args.train)
    picks = args.pick == "best" and args.train is not None
    settings = {
        "--backend": args.backend or backend_of(teacher),
        **{f"--{name.replace('_', '-')}": getattr(args, name) for name in _SETTINGS},
    }
    outputs = Path(f"{args.output}.{langs[0]}"), Path(f"{args.output}.{langs[1]}")
    job = Job(
        COMMAND,
        settings,
        {
            "TEACHER": paths_of(teacher),
            "--train": [f"{args.train}.{lang}" for lang in langs] if args.train else [],
            "--monolingual": args.monolingual,
            "--data": [args.data] if args.data else [],
            "--segmentation": [args.segmentation] if args.segmentation else [],
        },
        [*(OutputFile("--output", path) for path in outputs), OutputFile("--json", args.json, DISTILLATION)],
        overwrite=args.overwrite,
    )
    if job.is_done():
        return 0
    nbest = (args.beam if args.nbest is None else args.nbest) if picks else 1
    options = SearchOptions(args.beam, nbest, args.lenpen)
    batching = Batching(args.max_tokens, args.batch_size, args.buffer_size)
    kept = Filter(args.max_ratio, args.keep_copies)
    problems = [*options.problems(), *batching.problems(), *kept.problems(), *too_small("--workers", args.workers)]
    if args.nbest is not None and not picks:
        problems.append("`--nbest` is for `--pick best` with `--train`, whose references it picks by")
    sources = collect(problems, lambda: find_sources(args.train, args.monolingual, langs))
    if picks:
        collect(problems, lambda: sentence_metric(args.metric, langs[1]))
    backend = collect(
        problems,
        lambda: load_backend(
            teacher, args.backend, args.data, args.cpu, args.fp16, args.shortlist, max(args.workers or 0, 0)
        ),
    )
    segmentation = collect(problems, lambda: backend.segmentation(args.segmentation)) if backend is not None else None
    if segmentation is not None:
        problems += check_languages(langs, segmentation, teacher)
    job.reads(backend.files(args.segmentation) if backend is not None else [])
    problems += job.problems()
    if problems or sources is None or backend is None or segmentation is None:
        raise InputError(problems)
    translator = Translator(backend, segmentation, options, batching, "blank", searches=getattr(backend, "searches", 1))
    total = sum(source.lines for source in sources)
    with Progress("sentences", total) as progress, Workers(args.workers or cores()) as workers:
        picker = Picker(args.metric, langs[1], workers) if picks else None
        found = distill(Distillation(translator, kept, picker), sources, job, outputs, progress)
    if args.json:
        write_output("--json", args.json, report_lines(found, settings))
    job.note()
    print(f"{found.written:,} of {found.lines:,} pairs -> {' '.join(map(str, outputs))}")
    for line in said(found, args.metric):
        print(line)
    return 0


_SETTINGS = (
    *("pick", "metric", "nbest", "max_ratio", "keep_copies", "beam", "lenpen", "shortlist", "fp16"),
    "langs",
)
"""What the pairs depend on; batches and the device change them by rounding only."""


def said(found: Distilled, metric: str) -> list[str]:
    """What the user should know of the pairs, a line each."""
    from owf_fairseq.distillation.filtering import REASONS
    from owf_fairseq.distillation.picking import SENTENCE_METRICS

    lines = [
        f"left out: {found.left_out[reason]:,} with {what} ({'; '.join(found.examples[reason])}"
        f"{'; ...' if found.left_out[reason] > len(found.examples[reason]) else ''})"
        for reason, what in REASONS.items()
        if found.left_out[reason]
    ]
    if found.picked:
        lines.append(
            f"picked: of {found.not_first:,} of {found.picked:,} lines another translation than the most probable one; "
            f"mean {SENTENCE_METRICS[metric]} of those that were picked {found.score_of_picked / found.picked:.1f}, "
            f"of the most probable ones {found.score_of_first / found.picked:.1f}"
        )
    return lines
