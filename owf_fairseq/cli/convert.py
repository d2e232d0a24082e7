"""`owf convert`: a trained model of one configuration as the start of another."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

HELP = "turn a trained model into one that shares, drops or widens other blocks, or into plain fairseq's transformer"
EXAMPLE = (
    "owf convert checkpoint_best.pt --to owf_base_one_wide_ffn --init concat --output warm_start.pt\n"
    "owf convert checkpoint_best.pt --to owf_base_shared_enc --encoder-ffn-embed-dim 12288 --init concat \\\n"
    "    --output warm_start.pt\n"
    "owf convert checkpoint_best.pt --to individual --output untied.pt\n"
    "owf convert checkpoint_best.pt --to fairseq --output for_plain_fairseq.pt"
)

PASSES_FLAGS = True
"""The checkpoint and fairseq's flags come to ``run`` as ``args.fairseq_flags``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = (
        "owf convert CHECKPOINT --to ARCH --output FILE [--init mean|concat] [fairseq's model flags ...]\n"
        "       owf convert CHECKPOINT --to individual|fairseq --output FILE"
    )
    parser.description = (
        f"{HELP}.\nCHECKPOINT: of this plugin's models, or of fairseq's transformer. The flags of the target are those "
        "that\nfairseq-train takes, for patterns and widths of FFNs. Optimizer state is left out: give the result to\n"
        "fairseq-train as --finetune-from-model. It says what is exact, that is, computes what it did before."
    )
    parser.add_argument(
        "--to",
        required=True,
        metavar="ARCH",
        help="an arch (`owf params --list` prints them all); individual: every shared block is untied, exactly; "
        "fairseq: fairseq's own `transformer`, for which no plugin is needed; a dropped FFN becomes one that gives 0",
    )
    parser.add_argument(
        "--init",
        default="mean",
        metavar="{mean,concat}",
        help="FFNs that become one: the mean of their weights (the default), or their units side by side, N times as "
        "wide, whose output is the mean of their outputs. A wider FFN than that gets units that change nothing",
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="the checkpoint to write")


def run(args: argparse.Namespace) -> int:
    """Converts, and says what was exact."""
    from owf_fairseq.checkpoints.checkpoint import check_output_checkpoint, write_checkpoint
    from owf_fairseq.checkpoints.convert import COMMAND, convert
    from owf_fairseq.checkpoints.stored_model import read_model
    from owf_fairseq.errors import InputError
    from owf_fairseq.files.outputs import replaced_inputs

    problems = check_output_checkpoint(args.output, COMMAND)
    try:
        checkpoint, flags = split_checkpoint_and_flags(args.to, args.fairseq_flags)
        problems = problems or replaced_inputs("--output", args.output, [checkpoint])
        converted = convert(read_model(checkpoint), args.to, flags, args.init)
    except InputError as error:
        raise InputError([*problems, *error.problems]) from error
    if problems:
        raise InputError(problems)
    write_checkpoint(converted.state, args.output, COMMAND)
    for step in converted.steps:
        layers = " ".join(map(str, step.layers))
        print(f"{step.block}, layers {layers}: {'exact' if step.exact else 'approximate'}, {step.how}")
    print("all else: exact, as before")
    same = "the same function" if converted.exact else "not the same function"
    if converted.exact and any("epsilon" in step.how for step in converted.steps):
        same += ", up to the layer norm's epsilon,"
    print(f"{same} as {checkpoint} -> {args.output}")
    user_dir = "" if args.to == "fairseq" else '--user-dir "$(owf --user-dir)" '
    arch = " ".join([converted.arch, *converted.flags])
    print(f"fairseq-train: {user_dir}--arch {arch} --finetune-from-model {args.output}", flush=True)
    return 0


def split_checkpoint_and_flags(to: str, tokens: Sequence[str]) -> tuple[str, list[str]]:
    """The checkpoint among the words of the command line, and the flags of the model.

    Raises:
        InputError: there is not one checkpoint.
    """
    from owf_fairseq.errors import InputError
    from owf_fairseq.parameters import FlagParser, unknown_flag, words_and_flags
    from owf_fairseq.sharing import ARCHS

    arch = to if to in ARCHS else next(iter(ARCHS))
    checkpoints, flags, wrong = words_and_flags(arch, tokens)
    if wrong:
        raise InputError(unknown_flag(flag, FlagParser(arch).option_strings()) for flag in wrong)
    if len(checkpoints) != 1:
        raise InputError(f"name one checkpoint to convert, but there are {len(checkpoints)}" + _listed(checkpoints))
    return checkpoints[0], flags


def _listed(words: Sequence[str]) -> str:
    return f": {' '.join(words)}" if words else ""
