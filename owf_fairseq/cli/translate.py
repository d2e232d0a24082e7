"""`owf translate`: a text file to its translation, line by line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator

from owf_fairseq.cli._decoding import BUFFER, add_backend, add_batches, add_data, add_device, add_search, paths_of

HELP = "translate text with a checkpoint, one output line for each input line"
EXAMPLE = (
    "owf translate runs/my-model/checkpoint_best.pt --input test.en --output test.de\n"
    "owf translate --backend ctranslate2 runs/my-model/ctranslate2 --input test.en --output test.de\n"
    "owf translate runs/my-model/checkpoint_best.pt --nbest 5 <test.en >test.nbest"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.description = (
        f"{HELP}.\nThe text is cut into pieces as `owf prepare` recorded it beside the data, and they are\n"
        "joined again. Only LF separates lines; blank lines stay blank. A line's translation depends neither on its\n"
        "neighbours nor on the size of the batches, up to rounding. After an interruption, the same command with\n"
        "--output goes on where it was; it does nothing when the file is complete and nothing that it was made of has\n"
        "changed."
    )
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="of fairseq-train; several, with `:` between, decode as an ensemble; or a folder that `owf export` made",
    )
    add_backend(parser)
    parser.add_argument("--input", metavar="FILE", help="text, UTF-8 (default: standard input)")
    parser.add_argument("--output", metavar="FILE", help="where translations go (default: standard output)")
    parser.add_argument("--overwrite", action="store_true", help="replace --output, whatever it is")
    add_data(parser)
    search = parser.add_argument_group("search")
    add_search(search)
    search.add_argument(
        "--max-len-a", type=float, default=2.0, metavar="X", help="a translation has at most (default: 2) ..."
    )
    search.add_argument(
        "--max-len-b",
        type=int,
        default=10,
        metavar="N",
        help="... times the pieces of its own source line, plus N (default: 10) pieces",
    )
    search.add_argument("--min-len", type=int, default=1, metavar="N", help="it has at least N pieces (default: 1)")
    search.add_argument(
        "--nbest",
        type=int,
        default=1,
        metavar="N",
        help="N translations of each line, best first, as lines of NUMBER <tab> SCORE <tab> TEXT (see --scores)",
    )
    search.add_argument(
        "--scores",
        action="store_true",
        help="print NUMBER <tab> SCORE <tab> TEXT: the number of the input line, from 1, and the log-probability "
        "(natural) divided by length ** lenpen",
    )
    odd = parser.add_argument_group("lines that can't be translated as they are")
    odd.add_argument(
        "--on-error",
        choices=("stop", "blank"),
        default="stop",
        help="invalid UTF-8: name the lines and stop (default), or leave them blank",
    )
    odd.add_argument(
        "--long-lines",
        choices=("split", "blank"),
        default="split",
        help="more pieces than the model takes: translate it in parts (default), or leave it blank",
    )
    odd.add_argument(
        "--max-source-length", type=int, metavar="N", help="pieces of a line or part (default: what the model takes)"
    )
    speed = parser.add_argument_group("batches and device")
    add_batches(speed)
    speed.add_argument(
        "--buffer-size",
        type=int,
        metavar="N",
        help="lines that are read, sorted and put out together, and that an interruption loses: 1 answers each line at "
        "once (default: 10000, or 1 on a terminal)",
    )
    add_device(speed)


def run(args: argparse.Namespace) -> int:
    """Translates."""
    from owf_fairseq.decoding.backends import backend_of, load_backend
    from owf_fairseq.decoding.search import SearchOptions
    from owf_fairseq.decoding.text_files import Text, translate_to_file, translate_to_stream
    from owf_fairseq.decoding.translator import Batching, ScoredText, Translator
    from owf_fairseq.errors import InputError, collect
    from owf_fairseq.files.job import Job, OutputFile
    from owf_fairseq.files.outputs import output_file
    from owf_fairseq.progress import Progress

    def warn(text: str) -> None:
        print(f"owf translate: warning: {text}", file=sys.stderr)

    def rows(first: int, found: Iterable[list[ScoredText]]) -> Iterator[str]:
        for number, translations in enumerate(found, first):
            for one in translations:
                yield f"{number}\t{one.score:.6f}\t{one.text}" if args.scores or args.nbest > 1 else one.text

    job = Job(
        "owf translate",
        {
            "--backend": args.backend or backend_of(args.checkpoint),
            **{f"--{name.replace('_', '-')}": getattr(args, name) for name in _SETTINGS},
        },
        {
            "CHECKPOINT": paths_of(args.checkpoint),
            "--input": [args.input or "/dev/stdin"],
            "--data": [args.data] if args.data else [],
            "--segmentation": [args.segmentation] if args.segmentation else [],
        },
        [OutputFile("--output", args.output)],
        overwrite=args.overwrite,
    )
    if job.is_done():
        return 0
    terminal = args.input is None and sys.stdin.isatty()
    buffer = args.buffer_size if args.buffer_size is not None else 1 if terminal else BUFFER
    options = SearchOptions(args.beam, args.nbest, args.lenpen, args.max_len_a, args.max_len_b, args.min_len)
    batching = Batching(args.max_tokens, args.batch_size, buffer)
    problems = [*options.problems(), *batching.problems()]
    text = collect(problems, lambda: Text.open(args.input, _ON_ERROR[args.on_error]))
    backend = collect(
        problems, lambda: load_backend(args.checkpoint, args.backend, args.data, args.cpu, args.fp16, args.shortlist)
    )
    segmentation = collect(problems, lambda: backend.segmentation(args.segmentation)) if backend is not None else None
    job.reads(backend.files(args.segmentation) if backend is not None else [])
    problems += job.problems()
    if problems or text is None or backend is None or segmentation is None:
        raise InputError(problems)
    translator = Translator(
        backend,
        segmentation,
        options,
        batching,
        args.long_lines,
        args.max_source_length,
        warn,
        args.input or "standard input",
    )
    if args.output is None and terminal:
        translate_to_stream(translator, text, sys.stdout.buffer, rows)
    else:
        with Progress("sentences", text.lines) as progress:
            translator.warn = lambda text: progress.say(f"owf translate: warning: {text}")
            if args.output is None:
                translate_to_stream(translator, text, sys.stdout.buffer, rows, progress)
            elif job.repeatable and (os.path.isfile(args.output) or not os.path.exists(args.output)):
                translate_to_file(translator, text, job, args.output, rows, progress)
            else:
                with output_file("--output", args.output) as place, open(place, "wb") as file:
                    translate_to_stream(translator, text, file, rows, progress)
    job.note()
    if translator.capped:
        shown = ", ".join(map(str, translator.capped[:5])) + (", ..." if len(translator.capped) > 5 else "")
        warn(
            f"{len(translator.capped)} of {translator.lines} translations ended at their length cap (lines {shown}): "
            "--max-len-a and --max-len-b raise it"
        )
    return 0


_ON_ERROR = {"stop": "strict", "blank": "blank"}

_SETTINGS = (
    *("beam", "lenpen", "max_len_a", "max_len_b", "min_len", "nbest", "scores"),
    *("on_error", "long_lines", "max_source_length", "fp16", "shortlist"),
)
"""What a translation depends on; batches and the device change it by rounding only."""
