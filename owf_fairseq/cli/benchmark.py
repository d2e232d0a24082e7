"""`owf benchmark`: how fast models decode, and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from owf_fairseq.cli._benchmark_flags import add_benchmark_flags
from owf_fairseq.errors import InputError
from owf_fairseq.screen import shown_after

if TYPE_CHECKING:
    from owf_fairseq.files.job import Job
    from owf_fairseq.speed.benchmark_names import Named
    from owf_fairseq.tables import Report

HELP = "measure decoding speed, all models in turn in one run, or predict it from their shapes"
EXAMPLE = (
    "owf benchmark vanilla=runs/a/checkpoint_best.pt wide=runs/b/checkpoint_best.pt --input test.en --json speed.json\n"
    "owf benchmark owf_base owf_base_no_dec owf_base_one_wide_ffn --cpu --lengths 12/12 26/30 50/60\n"
    "owf benchmark owf_base owf_base_no_dec owf_decoder_only owf_decoder_only_shared_dec --by-size --cpu\n"
    "owf benchmark owf_big owf_big_one_wide_ffn --batch-sizes 1,2,4,8,16,32 --plot speed.png\n"
    "owf benchmark as_fairseq=owf_big owf_big owf_big_one_wide_ffn --unpacked as_fairseq --cpu\n"
    "owf benchmark owf_big owf_big_one_wide_ffn --backend fairseq,ctranslate2,ctranslate2:int8 --cpu\n"
    "owf benchmark with=runs/a/int8 without=runs/a/int8 --no-shortlist without --input test.en --beam 1 "
    "--max-tokens 1000 --clients 1,4 --cpu\n"
    "owf benchmark --predict owf_big owf_big_one_wide_ffn --batch-sizes 1,8,64,512"
)

PASSES_FLAGS = True
"""What the parser does not know, models and fairseq's flags, comes to ``run`` as ``args.fairseq_flags``."""

MEASURING = (
    *("input", "segmentation", "sentences", "runs", "warmup", "data", "unpacked", "memory", "backend"),
    *("baseline", "by_size", "max_tokens", "clients"),
    *("shortlist", "no_shortlist"),
)
PREDICTING = ("profile", "peak_gflops", "bandwidth_gbs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = (
        "owf benchmark [NAME=]MODEL [[NAME=]MODEL ...] [options] [fairseq's model flags for archs ...]\n"
        "       owf benchmark --predict [NAME=]ARCH [[NAME=]ARCH ...] [options] [fairseq's model flags ...]\n"
        "       owf benchmark --predict --paper"
    )
    parser.description = (
        f"{HELP}.\nMODEL: a checkpoint (several with `:` between for an ensemble), an arch, which gets random weights, "
        "or a folder\nthat `owf export` made. NAME, in tables and JSON: by default the arch; of a checkpoint the name "
        "of its folder, by\nwhich `owf report` joins it, or its path if another model has that name. Speeds are "
        "relative to the first model, unless\n--baseline or --by-size says another. Models come before flags that take "
        "several values.\n"
        "tokens/s: pieces of the best hypotheses, end-of-sentence symbols not counted, for a second of search. All\n"
        "models translate a batch before any gets the next one, so that ratios hold on a noisy machine."
    )
    add_benchmark_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Measures or predicts, prints the tables and writes the files."""
    job = None
    if args.predict or args.paper:
        tables = predicted(args)
    else:
        job, found = measured(args)
        if found is None:
            return 0
        tables = found
    with shown_after("\n\n".join(table.as_markdown() if args.markdown else table.as_text() for table in tables)):
        if args.json:
            from owf_fairseq.files.outputs import write_output

            write_output("--json", args.json, tables[0].as_json().split("\n"))
        if args.plot:
            from owf_fairseq.speed.plot import plot

            plot(tables[0].data, args.plot)
        if job is not None:
            job.note()
    return 0


def measured(args: argparse.Namespace) -> tuple[Job, Sequence[Report] | None]:
    """The tables of a measurement; none if the same was measured before.

    Raises:
        InputError: with every problem of the command line and the models.
    """
    from owf_fairseq.errors import collect
    from owf_fairseq.files.job import Job, OutputFile, files_in
    from owf_fairseq.speed.benchmark import benchmark, prepare_benchmark
    from owf_fairseq.speed.benchmark_names import read_names, with_backends
    from owf_fairseq.speed.options import BenchmarkOptions
    from owf_fairseq.speed.report import benchmark_tables

    def warn(text: str) -> None:
        print(f"owf benchmark: warning: {text}", file=sys.stderr)

    problems = [f"`{flag(name)}` is for `--predict`" for name in PREDICTING if getattr(args, name) is not None]
    options = BenchmarkOptions(**given(args))
    named, flags = collect(problems, lambda: read_names(args.fairseq_flags)) or ([], [])
    job = Job(
        "owf benchmark",
        {
            "MODEL": [one.model if one.is_arch else one.name for one in named],
            "flags of archs": flags,
            **{flag(name): value for name, value in vars(options).items() if name not in ("input", "data")},
        },
        {
            "CHECKPOINT": [path for one in named for path in one.checkpoints or [one.model] if not one.is_arch],
            "--input": [args.input] if args.input else [],
            "--data": [args.data] if args.data else [],
        },
        [OutputFile("--json", args.json, "benchmark"), OutputFile("--plot", args.plot)],
        overwrite=args.overwrite,
    )
    job.reads(path for one in named if one.is_exported for path in files_in(one.model))
    if not problems and job.is_done():
        return job, None
    problems += [*contradictions(args, named), *check_plot(args), *job.problems()]
    named = collect(problems, lambda: with_backends(named, options.backend)) or []
    candidates = collect(problems, lambda: prepare_benchmark(named, flags, options))
    if problems or candidates is None:
        raise InputError(problems)
    return job, benchmark_tables(benchmark(candidates, options, warn))


def predicted(args: argparse.Namespace) -> Sequence[Report]:
    """The tables of a prediction.

    Raises:
        InputError: with every problem of the command line.
    """
    from owf_fairseq.cost_model.cost import Workload
    from owf_fairseq.cost_model.device_profiles import choose_profile
    from owf_fairseq.cost_model.prediction import predict
    from owf_fairseq.errors import collect
    from owf_fairseq.files.outputs import check_output_file
    from owf_fairseq.speed.benchmark import calibrated
    from owf_fairseq.speed.benchmark_models import shapes_by_name
    from owf_fairseq.speed.benchmark_names import read_names
    from owf_fairseq.speed.options import BenchmarkOptions

    if args.paper:
        from owf_fairseq.cost_model.paper_speed import compare_batch_sizes, compare_rows

        others = [flag(name) for name in (*given(args), *PREDICTING, "plot", "json") if getattr(args, name)]
        if args.fairseq_flags or others:
            more = " ".join([*args.fairseq_flags, *others])
            raise InputError(f"`--paper` takes neither models nor flags of what is decoded, but got `{more}`")
        return [compare_batch_sizes(), compare_rows()]
    problems = [f"`{flag(name)}` measures, and `--predict` does not" for name in MEASURING if name in given(args)]
    options = BenchmarkOptions(**given(args))
    problems += [*options.problems(), *check_plot(args)]
    problems += check_output_file("--json", args.json, args.overwrite, kind="prediction")
    problems += check_output_file("--plot", args.plot, args.overwrite)
    device = (args.profile, args.peak_gflops, args.bandwidth_gbs, bool(args.calibrate))
    profile = collect(problems, lambda: choose_profile(*device))
    named, flags = collect(problems, lambda: read_names(args.fairseq_flags)) or ([], [])
    shapes = collect(problems, lambda: shapes_by_name(named, flags, options.vocab_size))
    if problems or shapes is None:
        raise InputError(problems)
    profile = profile or calibrated(options).profile
    workloads = [Workload(1, options.beam, source, target) for source, target in options.lengths]
    names = [one.name for one in named]
    return predict(names, shapes, workloads, options.batch_sizes, profile, options.fp16)


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The options that the user gave, by name; the rest have their defaults in ``BenchmarkOptions``."""
    names = (*MEASURING, "lengths", "batch_sizes", "beam", "threads", "vocab_size", "calibrate", "cpu", "fp16")
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name in names
        if (value := getattr(args, name)) is not None
    }


def flag(name: str) -> str:
    """As users type it."""
    return "--" + name.replace("_", "-")


def contradictions(args: argparse.Namespace, models: Sequence[Named]) -> list[str]:
    """Flags that would have no effect beside the others."""
    problems = []
    if args.input is not None and args.lengths is not None:
        problems.append("`--lengths` is of random sentences, and `--input` is a text: give one of them")
    if args.batch_sizes is not None and args.max_tokens is not None:
        problems.append("`--batch-sizes` counts sentences, and `--max-tokens` pieces: give one of them")
    if args.input is None and args.segmentation is not None:
        problems.append("`--segmentation` is of the text of `--input`, which is not given")
    if args.vocab_size is not None and models and not any(model.is_arch for model in models):
        problems.append("`--vocab-size` is for archs, and no arch is named: checkpoints have their own vocabulary")
    if args.data is not None and models and all(model.is_arch or model.is_exported for model in models):
        problems.append("`--data` is for checkpoints, and no checkpoint is named")
    return problems


def check_plot(args: argparse.Namespace) -> list[str]:
    """What forbids to draw the plot."""
    import importlib.util
    import os

    if args.plot is None:
        return []
    problems = []
    if os.path.splitext(args.plot)[1] not in (".png", ".pdf", ".svg"):
        problems.append(f"`--plot` must end in .png, .pdf or .svg, but is {args.plot}")
    if len(args.batch_sizes or ()) < 2:
        problems.append("`--plot` draws speeds by batch size: give several with `--batch-sizes`")
    if importlib.util.find_spec("matplotlib") is None:
        problems.append("`--plot` needs matplotlib: pip install '.[plot]'")
    return problems
