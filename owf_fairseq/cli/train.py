"""`owf train`: trainings by configs, each as the exact fairseq-train command."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from owf_fairseq.training.several import Member

HELP = "train a model by a config, or several models: the exact fairseq-train command, printed and run"
EXAMPLE = (
    "owf train wmt22_en_de/big_one_wide_ffn --data data-bin --save-dir runs/one_wide\n"
    "owf train multi30k/small multi30k/small_one_wide_ffn --run runs/multi30k --cpu\n"
    "owf train configs/multi30k/small.yaml --max-update 500 --dry-run"
)

PASSES_FLAGS = True
"""fairseq's flags come to ``run`` as ``args.fairseq_flags``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = (
        "owf train CONFIG [CONFIG ...] [--run DIR] [--seeds N ...] [--jobs N] [--data DIR] [--fp32] [--dry-run]\n"
        "                 [fairseq-train's flags ...]"
    )
    parser.description = (
        f"{HELP}.\nCONFIG comes first: a file, or one of the package's own as DATASET/NAME. Its keys are flags of\n"
        "fairseq-train; flags of the command line win. An interrupted training goes on with the same command, and a\n"
        "finished one stays as it is. resolved.yaml in --save-dir says what was run.\n\n"
        "Several trainings have a log in the folder of each, train.log; of its lines, those on losses are shown in\n"
        "short. All are checked before the first begins, and one that fails doesn't hold up the others.\n\n"
        "A config's update-freq is for one GPU. It is divided by the number of GPUs, so that an update stays as\n"
        "large, unless you give --update-freq. On one machine fairseq starts a process for each GPU. On several\n"
        "machines, with torchrun (on each of them) or in a job of SLURM:\n"
        "    torchrun --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint HOST:29500 --no-python \\\n"
        "        owf train CONFIG\n"
        "    srun --nodes 2 --ntasks-per-node 1 --gpus-per-node 8 owf train CONFIG --distributed-port 29500\n"
        "On CPUs, N processes, RANK from 0 to N-1:\n"
        "    owf train CONFIG --fp32 --cpu --distributed-no-spawn --distributed-backend gloo \\\n"
        "        --distributed-init-method tcp://HOST:29500 --distributed-world-size N --distributed-rank RANK \\\n"
        "        --ddp-backend legacy_ddp"
    )
    parser.add_argument(
        "configs", nargs="+", metavar="CONFIG", help="FILE.yaml, or DATASET/NAME: wmt22_en_de/big_one_wide_ffn"
    )
    parser.add_argument(
        "--run",
        dest="folder",
        metavar="DIR",
        help="a folder of several trainings: they read its data/ (or the shards in it), and each writes to DIR/NAME, "
        "NAME being the config's without folder and .yaml",
    )
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=[],
        metavar="N",
        help="train each config with each of these seeds, in DIR/NAME_seed_N",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="trainings at a time, where there are several (default: on a CPU, as many as there are cores, each with "
        "one thread; with GPUs 1, which uses all of them)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="fairseq's binary data; shards with `:` between (default: --run's, or config's)"
    )
    parser.add_argument("--fp32", action="store_true", help="leave out the config's fp16, which needs a GPU")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run nothing")


def run(args: argparse.Namespace) -> int:
    """Prints the commands and runs them."""
    if not args.dry_run:
        import fairseq_cli.train  # noqa: F401  first of all: it makes fairseq log to the standard output

    from owf_fairseq.errors import InputError
    from owf_fairseq.training.several import jobs_by_default, members, train_members

    if args.jobs is not None and args.jobs < 1:
        raise InputError(f"`--jobs` must be at least 1, but is {args.jobs}")
    wanted = members(args.configs, args.fairseq_flags, args.folder, args.seeds, args.data, args.fp32)
    if not args.dry_run:
        problems = [problem for member in wanted for problem in member.training.problems()]
        if problems:
            raise InputError(dict.fromkeys(problems))
        for member in wanted:
            if member.training.finished:
                print(f"owf train: {member.training.finished}", file=sys.stderr)
        wanted = [member for member in wanted if not member.training.finished]
        if not wanted:
            return 0
    if args.dry_run or len(wanted) == 1:
        for member in wanted:
            _one(member, args.dry_run)
        return 0
    jobs = args.jobs or jobs_by_default([member.training for member in wanted])
    failed = train_members(wanted, jobs, partial(print, flush=True))
    if failed:
        print(f"owf train: training failed for {', '.join(failed)}; see above", file=sys.stderr)
    return 1 if failed else 0


def _one(member: Member, dry_run: bool) -> None:
    """Prints the command of one training, and runs it in this process."""
    from owf_fairseq.training.run import train

    training = member.training
    if training.launch.rank == 0:
        update = training.describe_update()
        if update:
            print(f"owf train: {update}", file=sys.stderr)
        print(training.command, flush=True)
    if not dry_run:
        train(training)
