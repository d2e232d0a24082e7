"""`owf configs`: the package's configs, one for each row of the paper's tables."""

from __future__ import annotations

import argparse

HELP = "list the configs that `owf train` finds by name, or those of one of the paper's tables"
EXAMPLE = "owf configs\nowf configs --table one_wide --dataset multi30k"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.add_argument(
        "--table",
        metavar="NAME",
        help="list the rows of this table of the paper, in its order: sharing, dropping, one_wide, other, "
        "custom_sharing, attention, similarity or batch_size",
    )
    parser.add_argument("--dataset", metavar="NAME", help="a folder of configs, such as multi30k (default: all)")


def run(args: argparse.Namespace) -> int:
    """Prints one name a line."""
    from owf_fairseq.errors import InputError
    from owf_fairseq.training.config import config_names, table_configs

    if args.table is not None and args.dataset is None:
        raise InputError("`--table` needs `--dataset`: every dataset has its own configs for the paper's rows")
    if args.table is not None:
        names = table_configs(args.table, args.dataset)
    else:
        names = [name for name in config_names() if args.dataset in (None, name.split("/")[0])]
    if not names:
        known = dict.fromkeys(name.split("/")[0] for name in config_names())
        raise InputError(f"`--dataset` must be one of {', '.join(known)}, but is '{args.dataset}'")
    print("\n".join(names))
    return 0
