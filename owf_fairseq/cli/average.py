"""`owf average`: the mean of several checkpoints."""

from __future__ import annotations

import argparse

HELP = "average checkpoints of one training into one, which fairseq-generate reads like any other"
EXAMPLE = (
    "owf average runs/my-model --last 5 --output runs/my-model/averaged.pt\n"
    "owf average runs/my-model --best 3 --output runs/my-model/averaged.pt\n"
    "owf average checkpoint8.pt checkpoint9.pt --output averaged.pt"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.description = (
        f"{HELP}.\nThe mean is computed in float64. Shared weights stay shared. Optimizer state is left out: training "
        "from the\nresult starts afresh. Of checkpoints with the same number of updates, such as checkpoint_best.pt "
        "and the epoch\nthat it is a copy of, one is taken."
    )
    parser.add_argument(
        "checkpoints", nargs="+", metavar="CHECKPOINT", help="files; or one folder with --last or --best"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last", type=int, metavar="N", help="the N checkpoints of the folder with the most updates")
    which.add_argument(
        "--best",
        type=int,
        metavar="N",
        help="the N checkpoints of the folder with the best score that fairseq-train recorded in them: that of its "
        "--best-checkpoint-metric, by default the validation loss",
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="the checkpoint to write")


def run(args: argparse.Namespace) -> int:
    """Averages, and says which checkpoints."""
    from owf_fairseq.checkpoints import averaging
    from owf_fairseq.checkpoints.checkpoint import check_output_checkpoint, write_checkpoint
    from owf_fairseq.errors import InputError

    files = args.checkpoints
    problems = check_output_checkpoint(args.output, averaging.COMMAND, files)
    try:
        if args.last is not None or args.best is not None:
            if len(files) > 1:
                raise InputError(f"`--last` and `--best` choose in one folder, but {len(files)} names are given")
            choose, number = (averaging.last, args.last) if args.last is not None else (averaging.best, args.best)
            files = list(map(str, choose(files[0], number)))
        if problems:  # the mean takes a while
            raise InputError([])
        state = averaging.average(files)
    except InputError as error:
        raise InputError([*problems, *error.problems]) from error
    write_checkpoint(state, args.output, averaging.COMMAND)
    for averaged in state["extra_state"]["averaged"]:
        print(f"{averaged['file']}: {averaged['updates']} updates")
    print(f"mean of {len(files)} checkpoints, without optimizer state -> {args.output}", flush=True)
    return 0
