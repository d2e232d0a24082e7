"""`owf multilingual`: translation in many directions with one model, and its speed in one of them."""

from __future__ import annotations

import argparse
import sys

HELP = "translate in many directions with one model of fairseq's multilingual task, or measure its speed in one"
EXAMPLE = (
    "owf multilingual translate runs/multilingual/big/checkpoint_best.pt --input flores --output flores-big\n"
    "owf multilingual benchmark big=big/checkpoint_best.pt wide=wide/checkpoint_best.pt --direction de-en \\\n"
    "    --input flores/test.de --json speed.json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.description = (
        f"{HELP}.\nA checkpoint of translation_multi_simple_epoch says itself which languages it knows, and where\n"
        "fairseq puts their tags; text is cut into pieces as `owf prepare` recorded it beside the data."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    help_of_translate = "translate a text that is there in several languages from each of them into each other one"
    translate = actions.add_parser("translate", help=help_of_translate, description=help_of_translate)
    translate.add_argument("checkpoint", metavar="CHECKPOINT", help="of fairseq-train")
    translate.add_argument(
        "--input", required=True, metavar="DIR", help="files test.LANG, of which line n says the same in all languages"
    )
    translate.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="where test.SRC-TGT.TGT go; those that are there are left alone, unless the checkpoint or the text has "
        "changed",
    )
    translate.add_argument("--overwrite", action="store_true", help="translate all again, and replace what is there")
    translate.add_argument(
        "--directions", nargs="+", metavar="SRC-TGT", help="as in de-en (default: all that the model was trained on)"
    )
    for flag, kind, default, text in (
        ("--beam", int, 5, "beam size"),
        ("--lenpen", float, 1.0, "length penalty"),
        ("--max-len-a", float, 2.0, "a translation has at most X times the pieces of its source ..."),
        ("--max-len-b", int, 10, "... plus N pieces"),
        ("--max-tokens", int, 2000, "pieces of a batch, with padding"),
        ("--batch-size", int, None, "sentences of a batch"),
    ):
        shown = "no limit" if default is None else default
        metavar = "N" if kind is int else "X"
        translate.add_argument(flag, type=kind, default=default, metavar=metavar, help=f"{text} (default: {shown})")
    help_of_benchmark = "measure how fast models translate a text in one direction, as `owf benchmark` does"
    measure = actions.add_parser("benchmark", help=help_of_benchmark, description=help_of_benchmark)
    measure.add_argument("models", nargs="+", metavar="[NAME=]CHECKPOINT", help="speeds are relative to the first")
    measure.add_argument(
        "--baseline",
        action="append",
        default=[],
        metavar="NAME",
        help="or to this one; repeated, each is to the last baseline that stands before it",
    )
    measure.add_argument(
        "--by-size",
        action="store_true",
        help="or, without --baseline, to the individual model of the same size, as in the paper, or else to the first",
    )
    measure.add_argument("--direction", required=True, metavar="SRC-TGT", help="as in de-en")
    measure.add_argument("--input", required=True, metavar="FILE", help="text to translate, UTF-8")
    measure.add_argument("--sentences", type=int, metavar="N", help="from its start (default: all)")
    measure.add_argument("--beam", type=int, default=5, metavar="N", help="beam size (default: 5)")
    measure.add_argument("--runs", type=int, default=5, metavar="N", help="times that all is decoded (default: 5)")
    measure.add_argument("--threads", type=int, default=1, metavar="N", help="of torch (default: 1)")
    measure.add_argument(
        "--json", metavar="FILE", help="write everything as JSON (in place of JSON that it wrote before)"
    )
    measure.add_argument("--overwrite", action="store_true", help="replace --json if it is something else")
    for action in (translate, measure):
        action.add_argument("--data", metavar="DIR", help="the models' binary data (default: where they were trained)")
        action.add_argument("--cpu", action="store_true", help="use no GPU")
        action.add_argument("--fp16", action="store_true", help="half precision, on a GPU")


def run(args: argparse.Namespace) -> int:
    """Translates, or measures."""
    return _translate(args) if args.action == "translate" else _benchmark(args)


_SETTINGS = ("beam", "lenpen", "max_len_a", "max_len_b", "fp16")
"""What a translation depends on; batches and the device change it by rounding only."""


def _translate(args: argparse.Namespace) -> int:
    from pathlib import Path

    from owf_fairseq.decoding.multilingual import MultilingualBackend, file_of, translate_directions
    from owf_fairseq.decoding.search import SearchOptions
    from owf_fairseq.decoding.translator import Batching
    from owf_fairseq.errors import InputError, collect
    from owf_fairseq.files.job import Job, OutputFile

    options = SearchOptions(args.beam, 1, args.lenpen, args.max_len_a, args.max_len_b)
    batching = Batching(args.max_tokens, args.batch_size)
    problems = [*options.problems(), *batching.problems()]
    backend = collect(
        problems, lambda: MultilingualBackend.from_checkpoint(args.checkpoint, args.data, args.cpu, args.fp16)
    )
    if problems or backend is None:
        raise InputError(problems)
    directions = args.directions or backend.tags.directions
    langs = dict.fromkeys(lang for direction in directions for lang in direction.split("-"))
    texts = {lang: Path(args.input) / f"test.{lang}" for lang in langs}
    data = [args.data] if args.data else []
    jobs = {
        direction: Job(
            "owf multilingual translate",
            {f"--{name.replace('_', '-')}": getattr(args, name) for name in _SETTINGS},
            {"CHECKPOINT": [args.checkpoint], "--input": [texts[direction.split("-")[0]]], "--data": data},
            [OutputFile("--output", file_of(direction, args.output))],
            overwrite=args.overwrite,
        )
        for direction in directions
    }
    made = translate_directions(backend, texts, args.output, directions, options, batching, jobs)
    there = f", {len(directions) - len(made)} were there" if len(made) < len(directions) else ""
    print(f"{len(made)} of {len(directions)} directions translated{there} -> {args.output}")
    return 0


def _benchmark(args: argparse.Namespace) -> int:
    from owf_fairseq.errors import InputError, collect
    from owf_fairseq.files.job import Job, OutputFile
    from owf_fairseq.files.outputs import write_output
    from owf_fairseq.screen import shown_after
    from owf_fairseq.speed.benchmark import benchmark
    from owf_fairseq.speed.benchmark_direction import prepare_direction
    from owf_fairseq.speed.benchmark_names import read_names
    from owf_fairseq.speed.options import BenchmarkOptions
    from owf_fairseq.speed.report import benchmark_tables

    def warn(text: str) -> None:
        print(f"owf multilingual: warning: {text}", file=sys.stderr)

    names = ("input", "sentences", "beam", "runs", "threads", "data", "cpu", "fp16", "by_size")
    options = BenchmarkOptions(**{name: getattr(args, name) for name in names}, baseline=tuple(args.baseline))
    problems: list[str] = []
    named, _ = collect(problems, lambda: read_names(args.models)) or ([], [])
    job = Job(
        "owf multilingual benchmark",
        {
            "names": [one.name for one in named],
            "--direction": args.direction,
            "--baseline": args.baseline,
            **{f"--{name.replace('_', '-')}": getattr(args, name) for name in names},
        },
        {"CHECKPOINT": [path for one in named for path in one.checkpoints], "--input": [args.input]},
        [OutputFile("--json", args.json, "benchmark")],
        overwrite=args.overwrite,
    )
    if not problems and job.is_done():
        return 0
    problems += job.problems()
    candidates = collect(problems, lambda: prepare_direction(named, args.direction, options))
    if problems or candidates is None:
        raise InputError(problems)
    made = benchmark_tables(benchmark(candidates, options, warn))
    with shown_after("\n\n".join(table.as_text() for table in made)):
        if args.json:
            write_output("--json", args.json, made[0].as_json().split("\n"))
            job.note()
    return 0
