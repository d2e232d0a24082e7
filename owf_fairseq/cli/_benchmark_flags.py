"""The flags of `owf benchmark`."""

from __future__ import annotations

import argparse

from owf_fairseq.cli._values import names_by_commas, numbers_by_commas, pair_of_lengths


def add_benchmark_flags(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
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
    what.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        help="in place of --batch-sizes: batches of as many sentences of like length as have N source pieces with "
        "padding, as `owf translate` makes them",
    )
    what.add_argument("--beam", type=int, metavar="N", help="beam size (default: 5; 1 is greedy search)")
    what.add_argument("--vocab-size", type=int, metavar="N", help="of archs, special symbols included (default: 32000)")
    what.add_argument("--data", metavar="DIR", help="the checkpoints' binary data (default: where they were trained)")
    how = parser.add_argument_group("how it is measured")
    how.add_argument("--runs", type=int, metavar="N", help="times that everything is decoded (default: 5)")
    how.add_argument("--warmup", type=int, metavar="N", help="untimed searches before (default: 1)")
    how.add_argument("--threads", type=int, metavar="N", help="of a search (default: 1)")
    how.add_argument(
        "--clients",
        type=numbers_by_commas,
        metavar="N,N,...",
        help="as well: translations a second, and the time until a translation is there, when N clients ask at the "
        "same time, each for one sentence after the other; for ctranslate2, with as many searches of --threads at a "
        "time as there are cores",
    )
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
