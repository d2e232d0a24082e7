"""`owf benchmark`: how fast models decode, and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from owf_fairseq.cli._values import names_by_commas, numbers_by_commas, pair_of_lengths
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
    "owf benchmark --predict owf_big owf_big_one_wide_ffn --batch-sizes 1,8,64,512"
)

PASSES_FLAGS = True
"""What the parser does not know, models and fairseq's flags, comes to ``run`` as ``args.fairseq_flags``."""

MEASURING = (
    *("input", "segmentation", "sentences", "runs", "warmup", "data", "unpacked", "memory", "backend"),
    *("baseline", "by_size"),
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
    what = parser.add_argument_group("what is decoded")
    what.add_argument(
        "--lengths",
        nargs="+",
        type=pair_of_lengths,
        metavar="S/T",
        help="random sentences of S pieces, translated to exactly T (default: 26/30)",
    )
    what.add_argument(
        "--input", metavar="FILE", help="text to translate instead, sorted by length; for checkpoints, UTF-8"
    )
    what.add_argument(
        "--segmentation",
        metavar="DIR",
        help="of --input: a folder with another record of how text becomes pieces, or `none`: it is in pieces already "
        "(default: as recorded beside the data)",
    )
    what.add_argument(
        "--sentences",
        type=int,
        metavar="N",
        help="random sentences of a run, at least (default: 10; batches are full), or lines of --input, from its start "
        "(default: all)",
    )
    what.add_argument(
        "--batch-sizes",
        type=numbers_by_commas,
        metavar="N,N,...",
        help="sentences that are decoded together (default: 1); several give the table of the paper's appendix as well",
    )
    what.add_argument("--beam", type=int, metavar="N", help="beam size (default: 5)")
    what.add_argument("--vocab-size", type=int, metavar="N", help="of archs, special symbols included (default: 32000)")
    what.add_argument("--data", metavar="DIR", help="the checkpoints' binary data (default: where they were trained)")
    how = parser.add_argument_group("how it is measured")
    how.add_argument("--runs", type=int, metavar="N", help="times that everything is decoded (default: 5)")
    how.add_argument("--warmup", type=int, metavar="N", help="untimed searches before (default: 1)")
    how.add_argument("--threads", type=int, metavar="N", help="of a search (default: 1)")
    how.add_argument(
        "--backend",
        type=names_by_commas,
        metavar="NAME,...",
        help="the programs that decode each model: fairseq (default), ctranslate2 or, with the weights so quantised, "
        "ctranslate2:int8 and others (see `owf export --help`); models are exported for the time of the measurement",
    )
    how.add_argument(
        "--baseline",
        action="append",
        metavar="NAME",
        help="speeds are relative to this model; repeated, each is to the last baseline that stands before it",
    )
    how.add_argument(
        "--by-size",
        action="store_true",
        default=None,
        help="without --baseline: speeds are relative to the individual model of the same size, as in the paper, or "
        "else to the first",
    )
    how.add_argument(
        "--shortlist",
        type=int,
        metavar="N",
        help="archs that ctranslate2 decodes may write N symbols only, as with a shortlist; exported models have their "
        "own, and use it",
    )
    how.add_argument(
        "--no-shortlist",
        nargs="*",
        metavar="NAME",
        help="decode these models, or without names all, without a shortlist (one folder may be given twice, as "
        "with=DIR without=DIR)",
    )
    how.add_argument("--cpu", action="store_true", default=None, help="use no GPU")
    how.add_argument("--fp16", action="store_true", default=None, help="half precision, on a GPU")
    how.add_argument(
        "--unpacked",
        nargs="*",
        metavar="NAME",
        help="leave matrices as they are, as fairseq does, of these models, or without names of all (default: on a "
        "CPU, they are laid out for it when a model is loaded)",
    )
    how.add_argument(
        "--memory",
        action="store_true",
        default=None,
        help="peak memory as well, in a new process for each model and row of the table",
    )
    how.add_argument(
        "--calibrate",
        action="store_true",
        default=None,
        help="measure what this machine computes and reads a second, and show the speeds that this allows",
    )
    form = parser.add_argument_group("output")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    form.add_argument(
        "--json",
        metavar="FILE",
        help="write everything, with every run, as JSON; the same command does nothing when it is there and no file "
        "has changed",
    )
    form.add_argument("--plot", metavar="FILE", help="draw the speeds by batch size (.png, .pdf or .svg)")
    form.add_argument(
        "--overwrite", action="store_true", help="measure again, and replace --json and --plot whatever they are"
    )
    model = parser.add_argument_group("the cost model alone")
    model.add_argument(
        "--predict",
        action="store_true",
        help="measure nothing: what archs compute and read, how fast a device should be, and from which batch size on "
        "the first model is ahead",
    )
    model.add_argument("--paper", action="store_true", help="with --predict: the paper's speeds beside the predictions")
    model.add_argument(
        "--profile",
        metavar="NAME",
        help="the device: v100 (default; the paper's, with overheads fitted to its speeds), v100-roofline (its data "
        "sheet alone) or cpu (one thread of a server); --calibrate: this machine",
    )
    model.add_argument("--peak-gflops", type=float, metavar="X", help="of another device, with ...")
    model.add_argument("--bandwidth-gbs", type=float, metavar="X", help="... its memory's bandwidth in GB/s")


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
    from owf_fairseq.speed.benchmark import BenchmarkOptions, benchmark, prepare_benchmark
    from owf_fairseq.speed.benchmark_names import read_names, with_backends
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
    from owf_fairseq.speed.benchmark import BenchmarkOptions, calibrated
    from owf_fairseq.speed.benchmark_models import shapes_by_name
    from owf_fairseq.speed.benchmark_names import read_names

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
