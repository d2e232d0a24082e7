"""`owf reproduce`: a table of the paper on prepared text, from training to the table."""

from __future__ import annotations

import argparse
import shlex
import time

HELP = "reproduce a table of the paper: train the models of its rows, translate, score, measure the speed, report"
EXAMPLE = (
    "owf reproduce --table one_wide --dataset multi30k --cpu\n"
    "owf reproduce --table dropping --dataset quickstart --max-update 500 --sentences 100 --cpu\n"
    "owf reproduce --table one_wide --dataset wmt22_en_de --max-tokens 7168 --dry-run\n"
    "owf reproduce --table batch_size --dataset multi30k --speed 512 --cpu\n"
    "owf reproduce --table similarity --dataset multi30k --rows multi30k/small multi30k/small_no_dec --cpu"
)

PASSES_FLAGS = True
"""fairseq's flags come to ``run`` as ``args.fairseq_flags``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = "owf reproduce --dataset NAME [--table NAME] [options] [fairseq-train's flags ...]"
    parser.description = (
        f"{HELP}.\nIt runs other commands of owf, one after another, and prints each before it runs; --dry-run prints\n"
        "them alone. It can be interrupted and started again. The text and the binary data are there already, raw/\n"
        "and data/ in the folder of the run, as scripts/DATASET/download.sh and preprocess.sh make them;\n"
        "scripts/reproduce_tables.sh does that, too. fairseq-train's flags go to `owf train` for every row:\n"
        "--max-update N, ...; for other languages --source-lang A --target-lang B, or --langs A,B,...\n\n"
        "In the similarity tables the baseline is the first row's model with the first of --seeds. The same model\n"
        "with the other seeds, and with that of the config, is the benchmark. So neither it nor any of the rows began\n"
        "with the weights that the baseline began with: models of one seed stay alike by that alone.\n\n"
        "A row is compared with the individual model of its own size. The table of batch sizes is measured at those\n"
        "of the paper that the sentences of --speed fill."
    )
    parser.add_argument(
        "--dataset",
        required=True,
        metavar="NAME",
        help="multi30k, quickstart, iwslt14_de_en, wmt22_en_de, wmt16_en_ro or multilingual",
    )
    parser.add_argument(
        "--table",
        metavar="NAME",
        help="of the paper: sharing, dropping, one_wide, other, custom_sharing, attention, similarity or batch_size "
        "(default: one_wide; of wmt16_en_ro and multilingual, other). `owf configs --table NAME --dataset NAME` prints "
        "its rows",
    )
    parser.add_argument(
        "--run",
        dest="folder",
        metavar="DIR",
        help="the folder of the run (default: that of the configs, runs/DATASET)",
    )
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="CONFIG", help="other configs than the table's, the baseline's first"
    )
    parser.add_argument("--sentences", type=int, metavar="N", help="of the test set, from its start (default: all)")
    parser.add_argument(
        "--metrics",
        nargs="+",
        default=[],
        metavar="METRIC",
        help="as `owf evaluate` takes them (default: the paper's; COMET only if it is installed)",
    )
    parser.add_argument(
        "--speed",
        metavar="N",
        help="sentences of the test set that the speed is measured on, from its start, or `all` (default: all, as in "
        "the paper; without a GPU a sample of 100)",
    )
    parser.add_argument(
        "--direction",
        metavar="A-B",
        help="multilingual: that the speed is measured in (default: de-en, as in the paper)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="models that are trained at a time: see `owf train`")
    parser.add_argument("--fp32", action="store_true", help="leave out the configs' fp16, which needs a GPU")
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=[2, 3],
        metavar="N",
        help="similarity: of the baseline and of the benchmark, other than the configs' (default: 2 3)",
    )
    parser.add_argument(
        "--capture",
        default="sublayer",
        metavar="WHAT",
        help="similarity: sublayer (default) or module, as `owf similarity` takes it",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace what was made with other settings: translations, scores, speeds (no checkpoints)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run nothing")


def run(args: argparse.Namespace) -> int:
    """Runs the commands, up to one that fails."""
    if not args.dry_run:
        import fairseq_cli.train  # noqa: F401  first of all: it makes fairseq log to the standard output

    from owf_fairseq.cli import main
    from owf_fairseq.recipes.recipe import Recipe
    from owf_fairseq.recipes.tables import Walk

    begun = time.monotonic()
    walk = Walk.of(
        Recipe(
            args.dataset,
            args.table,
            args.folder,
            tuple(args.rows),
            tuple(args.fairseq_flags),
            args.fp32,
            args.cpu,
            args.jobs,
            args.sentences,
            args.speed,
            args.direction,
            tuple(args.seeds),
            args.capture,
            args.overwrite,
            tuple(args.metrics),
        )
    )
    for command in walk.commands():
        print(f"{'' if args.dry_run else '== '}owf {shlex.join(command)}", flush=True)
        status = 0 if args.dry_run else main(command)
        if status:
            return status
    if not args.dry_run:
        minutes, seconds = divmod(round(time.monotonic() - begun), 60)
        print(f"== this took {minutes} min {seconds:02d} s; {walk.result}")
    return 0
