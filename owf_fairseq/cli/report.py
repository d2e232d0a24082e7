"""`owf report`: our results in the shape of the paper's tables."""

from __future__ import annotations

import argparse

HELP = "write results as a table of the paper, our numbers beside the paper's"
EXAMPLE = (
    "owf report scores.json speed.json --table one_wide\n"
    "owf report speed.json --table batch_size --output batch_sizes.md"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.description = (
        f"{HELP}.\nIt reads the JSON of `owf evaluate` and `owf benchmark` and joins them by the models' names.\n"
        "A model's row is that of its configuration and width, which the benchmark says, or the name itself:\n"
        "owf_big_one_wide_ffn, big_shared_enc_no_dec_24576. Models that are not in the paper's table stand below.\n"
        "As in the paper, daggers, speed and parameters in % of a row are relative to the individual model of its size."
    )
    parser.add_argument("results", nargs="+", metavar="JSON", help="of `owf evaluate --json` or `owf benchmark --json`")
    parser.add_argument(
        "--table",
        default="one_wide",
        metavar="NAME",
        help="of the paper: sharing, dropping, one_wide (default), other, custom_sharing, attention or batch_size",
    )
    parser.add_argument(
        "--pair", default="en-de", metavar="PAIR", help="the data of ours: en-de (default), en-ro or multi"
    )
    parser.add_argument(
        "--lengths", metavar="S/T", help="of several in a benchmark, those to show, as in 26/30 (default: the first)"
    )
    parser.add_argument(
        "--only-ours", action="store_true", help="leave out rows and columns of the paper that have no number of ours"
    )
    parser.add_argument(
        "--note",
        action="append",
        default=[],
        metavar="TEXT",
        help="a sentence to stand under the table; may be repeated",
    )
    parser.add_argument("--output", metavar="FILE", help="write Markdown there as well")
    parser.add_argument("--json", metavar="FILE", help="write JSON there as well")
    parser.add_argument("--overwrite", action="store_true", help="replace --output, and a --json that is no report")


def run(args: argparse.Namespace) -> int:
    """Prints the table as Markdown."""
    from dataclasses import replace

    from owf_fairseq.errors import InputError, collect
    from owf_fairseq.files.outputs import check_output_file, write_output
    from owf_fairseq.paper.report import PAIRS, REPORT_KIND, report, tables_of_the_paper
    from owf_fairseq.paper.results import read_results
    from owf_fairseq.screen import shown_after

    problems = check_output_file("--output", args.output, args.overwrite, inputs=args.results)
    problems += check_output_file("--json", args.json, args.overwrite, kind=REPORT_KIND, inputs=args.results)
    if args.table not in tables_of_the_paper():
        problems.append(f"`--table` must be one of {', '.join(tables_of_the_paper())}, but is '{args.table}'")
    if args.pair not in PAIRS:
        problems.append(f"`--pair` must be one of {', '.join(PAIRS)}, but is '{args.pair}'")
    results = collect(problems, lambda: read_results(args.results, args.lengths))
    if problems or results is None:
        raise InputError(problems)
    made = report(results, args.table, args.only_ours, args.pair)
    made = replace(made, notes=[*made.notes, *(f"- {note}" for note in args.note)])
    with shown_after(made.as_markdown()):
        if args.output:
            write_output("--output", args.output, made.as_markdown().split("\n"))
        if args.json:
            write_output("--json", args.json, made.as_json().split("\n"))
    return 0
