"""`owf similarity`: how similar models are inside, component by component."""

from __future__ import annotations

import argparse

HELP = "compare models' representations by CKA and LNS, with each other and with themselves, as the paper does"
EXAMPLE = (
    "owf similarity big=a.pt wide=b.pt --benchmark seed2.pt seed3.pt --src test.en --ref test.de --output similarity\n"
    "owf similarity big=a.pt wide=b.pt --src test.en --ref test.de --sentences 500 --capture module --debiased\n"
    "owf similarity big=a.pt wide=b.pt --src test.en --ref test.de --neighbors 17 --component decoder.5"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = "owf similarity [NAME=]CHECKPOINT [[NAME=]CHECKPOINT ...] --src SRC --ref REF [options]"
    parser.description = (
        f"{HELP}.\nA sentence's representation is the mean over its tokens of a component's output: `0.sa`, `0.ca`, "
        "`0.ffn` (self-attention,\ncross-attention, FFN of layer 0), or `0`, the layer as a whole. The models read the "
        "source and are made to read the\nreference. All models are compared with the first one, and each with "
        "itself; a model with random weights is the lower\nbound. Where two models have different components, as with "
        "dropped FFNs, whole layers are compared. Scores are\nmeans over corresponding components. Models that were "
        "trained with one seed stay alike by that alone: give those\nthat you compare another one than the baseline's."
    )
    what = parser.add_argument_group("what is compared")
    what.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT", help="of fairseq-train; the baseline first")
    what.add_argument(
        "--benchmark",
        nargs="+",
        default=[],
        metavar="CHECKPOINT",
        help="the baseline trained with other seeds: their mean similarity counts as 100 in the normalised table",
    )
    what.add_argument("--src", required=True, metavar="SRC", help="source text, one sentence a line")
    what.add_argument("--ref", required=True, metavar="REF", help="its reference translation, which is force-decoded")
    what.add_argument("--sentences", type=int, metavar="N", help="of the test set, from its start (default: all)")
    what.add_argument("--data", metavar="DIR", help="the models' binary data (default: where they were trained)")
    what.add_argument(
        "--segmentation",
        metavar="DIR",
        help="a folder with another record of how text becomes pieces, or `none`: it is in pieces already (default: as "
        "recorded beside the data)",
    )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--capture",
        default="sublayer",
        metavar="WHAT",
        help="a component's output as the next one gets it, after the residual connection and, post-norm, the layer "
        "norm (sublayer, default), or before both (module). Whole layers are the same either way. The paper doesn't "
        "say which it takes",
    )
    how.add_argument(
        "--no-eos",
        action="store_true",
        help="leave the end-of-sentence symbol out of the means: the source's last token, and the first that the "
        "decoder reads",
    )
    how.add_argument(
        "--debiased",
        action="store_true",
        help="the debiased estimator of CKA, for fewer sentences than dimensions (default: the paper's, which is too "
        "high then)",
    )
    how.add_argument(
        "--k", type=int, metavar="N", help="neighbours of a sentence for LNS (default: 5 %% of the sentences)"
    )
    how.add_argument(
        "--max-tokens", type=int, default=4000, metavar="N", help="tokens of a batch, with padding (default: 4000)"
    )
    how.add_argument(
        "--seed", type=int, metavar="N", help="of the random weights (default: one that no model here began with)"
    )
    how.add_argument("--cpu", action="store_true", help="use no GPU")
    look = parser.add_argument_group("one sentence, to look at, instead of the tables")
    look.add_argument(
        "--neighbors",
        type=int,
        metavar="LINE",
        help="list the nearest neighbours (--k, by default 10) of this line in one model, or in two side by side",
    )
    look.add_argument(
        "--component",
        metavar="NAME",
        help="encoder.0.sa, decoder.5.ffn or, for a whole layer, decoder.5 (default: the encoder's last layer)",
    )
    form = parser.add_argument_group("output")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    form.add_argument(
        "--output",
        metavar="DIR",
        help="make a folder with similarity.json, tables.md and the pictures (PNG and SVG); the same command does "
        "nothing when it is there and no file has changed",
    )
    form.add_argument("--no-plots", action="store_true", help="without pictures, which need matplotlib")
    form.add_argument("--json", metavar="FILE", help="write the JSON alone, or that of --neighbors")
    form.add_argument(
        "--overwrite",
        action="store_true",
        help="compare again, and replace what was made with other settings, and --json whatever it is",
    )


_SETTINGS = (
    *("capture", "no_eos", "debiased", "k", "sentences", "seed"),
    *("neighbors", "component", "no_plots"),
)
"""What the numbers depend on; batches and the device change them by rounding only."""
_FILES = ("src", "ref", "data", "segmentation")


def run(args: argparse.Namespace) -> int:
    """Prints the tables and writes the folder."""
    import sys

    from owf_fairseq.analysis import neighbors, output, similarity
    from owf_fairseq.analysis.preparation import doubts, prepare_analysis
    from owf_fairseq.analysis.settings import AnalysisSettings
    from owf_fairseq.analysis.tables import similarity_tables, with_headings
    from owf_fairseq.errors import InputError
    from owf_fairseq.files.job import Job, OutputFile
    from owf_fairseq.files.outputs import write_output
    from owf_fairseq.model_names import split_name
    from owf_fairseq.screen import shown_after

    def warn(text: str) -> None:
        print(f"{output.COMMAND}: warning: {text}", file=sys.stderr, flush=True)

    settings = AnalysisSettings(
        capture=args.capture,
        eos=not args.no_eos,
        debiased=args.debiased,
        k=args.k,
        sentences=args.sentences,
        max_tokens=args.max_tokens,
        seed=args.seed,
        data=args.data,
        segmentation=args.segmentation,
        cpu=args.cpu,
    )
    given = {"CHECKPOINT": args.checkpoints, "--benchmark": args.benchmark}
    kind = similarity.SIMILARITY_KIND if args.neighbors is None else neighbors.NEIGHBORS_KIND
    job = Job(
        output.COMMAND,
        {
            **{f"{flag} names": [split_name(word)[0] for word in words] for flag, words in given.items()},
            **{f"--{name.replace('_', '-')}": getattr(args, name) for name in _SETTINGS},
        },
        {
            **{flag: [split_name(word)[1] for word in words] for flag, words in given.items()},
            **{f"--{name}": [path] if (path := getattr(args, name)) else [] for name in _FILES},
        },
        [OutputFile("--json", args.json, kind)],
        args.output,
        args.overwrite,
    )
    if job.is_done():
        return 0
    problems = output.check_plots(args.output, not args.no_plots)
    if args.component and args.neighbors is None:
        problems.append("`--component` is of `--neighbors`, which is not given")
    if args.no_plots and args.output is None:
        problems.append("`--no-plots` is of `--output`, which is not given")
    if args.neighbors is not None and args.output:
        problems.append("`--neighbors` makes one table, and no folder: leave out `--output`, or name a `--json`")
    problems += job.problems()
    prepared = prepare_analysis(args.checkpoints, args.benchmark, args.src, args.ref, settings, warn, problems)
    # what was read beside the checkpoints is known now
    job.reads(path for model in prepared.models for path in model.data.files(args.segmentation))
    if again := job.problems():
        raise InputError(again)
    if args.neighbors is not None:
        table = neighbors.side_by_side(prepared, args.neighbors, args.component)
        json = table.as_json()
        text = table.as_markdown() if args.markdown else table.as_text()
    else:
        for doubt in doubts(prepared):
            warn(doubt)
        data = similarity.analyse(prepared)
        made = similarity_tables(data)
        json = output.as_json(data, made)
        text = "\n\n".join(
            f"## {heading}\n\n{table.as_markdown()}" if args.markdown else f"{heading}\n\n{table.as_text()}"
            for heading, table in with_headings(data, made)
        )
    with shown_after(text):
        if args.json:
            write_output("--json", args.json, json.split("\n"))
        if args.output:
            output.write_folder(args.output, data, made, not args.no_plots, job.record(args.output))
        job.note()
    return 0
