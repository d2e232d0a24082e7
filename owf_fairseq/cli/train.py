"""`owf train`: a training by a config, as the exact fairseq-train command."""

from __future__ import annotations

import argparse
import sys

HELP = "train a model by a config: the exact fairseq-train command, printed and run"
EXAMPLE = (
    "owf train wmt22_en_de/big_one_wide_ffn --data data-bin --save-dir runs/one_wide\n"
    "owf train configs/multi30k/small.yaml --max-update 500 --dry-run"
)

PASSES_FLAGS = True
"""fairseq's flags come to ``run`` as ``args.fairseq_flags``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = "owf train CONFIG [--data DIR] [--fp32] [--dry-run] [fairseq-train's flags ...]"
    parser.description = (
        f"{HELP}.\nCONFIG comes first: a file, or one of the package's own as DATASET/NAME. Its keys are flags of\n"
        "fairseq-train; flags of the command line win. An interrupted training goes on with the same command, and a\n"
        "finished one stays as it is. resolved.yaml in --save-dir says what was run.\n\n"
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
    parser.add_argument("config", metavar="CONFIG", help="FILE.yaml, or DATASET/NAME: wmt22_en_de/big_one_wide_ffn")
    parser.add_argument(
        "--data", metavar="DIR", help="fairseq's binary data; shards with `:` between (default: config's)"
    )
    parser.add_argument("--fp32", action="store_true", help="leave out the config's fp16, which needs a GPU")
    parser.add_argument("--dry-run", action="store_true", help="print the command, and run nothing")


def run(args: argparse.Namespace) -> int:
    """Prints the command and runs it."""
    if not args.dry_run:
        import fairseq_cli.train  # noqa: F401  first of all: it makes fairseq log to the standard output

    from owf_fairseq.errors import InputError
    from owf_fairseq.training.run import plan, train

    training = plan(args.config, args.fairseq_flags, args.data, args.fp32)
    if not args.dry_run:
        problems = training.problems()
        if problems:
            raise InputError(problems)
        if training.finished:
            print(f"owf train: {training.finished}", file=sys.stderr)
            return 0
    if training.launch.rank == 0:
        update = training.describe_update()
        if update:
            print(f"owf train: {update}", file=sys.stderr)
        print(training.command, flush=True)
    if not args.dry_run:
        train(training)
    return 0
