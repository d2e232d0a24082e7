"""`owf params`: how many parameters an architecture has, and where; and the paper's counts beside ours."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from owf_fairseq.errors import InputError
from owf_fairseq.paper import rows as paper
from owf_fairseq.sharing import ARCHS, SIZES, configuration_of
from owf_fairseq.tables import Report, number

if TYPE_CHECKING:
    from owf_fairseq.parameters import ParameterCount

HELP = "count the parameters of architectures exactly, block by block, or beside the paper's counts"
EXAMPLE = "owf params owf_big owf_big_shared_enc_no_dec --encoder-ffn-embed-dim 24576"

PASSES_FLAGS = True
"""What the parser does not know, the archs and fairseq's flags, comes to ``run`` as ``args.fairseq_flags``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = "owf params [ARCH ...] [options] [fairseq's model flags ...]\n       owf params --list | --paper"
    parser.description = (
        f"{HELP}.\nARCH: one name or more; `owf params --list` prints them all.\nEvery flag of the model that "
        "fairseq-train takes can be given, ours (--encoder-ffn cycle-2) and\nfairseq's own "
        "(--encoder-ffn-embed-dim 24576)."
    )
    parser.add_argument(
        "--vocab-size",
        type=int,
        metavar="N",
        help="symbols of fairseq's dictionary, the 4 special ones included (default: "
        f"{paper.VOCAB_SIZES['en-de']}, as in the paper's English-German tables)",
    )
    parser.add_argument(
        "--separate-embeddings",
        action="store_true",
        help="separate matrices for source, target and output, fairseq's default (default here: one for all three, "
        "as in the paper and with fairseq's --share-all-embeddings)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--paper", action="store_true", help="every row of the paper's tables beside our count")
    what.add_argument("--list", action="store_true", help="all archs, with a description")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print a Markdown table")


def run(args: argparse.Namespace) -> int:
    """Prints one table."""
    if args.list:
        _refuse_more(args)
        report = list_archs()
    elif args.paper:
        from owf_fairseq.paper.counts import parameter_counts

        _refuse_more(args)
        report = parameter_counts()
    else:
        report = arch_counts(args.fairseq_flags, args.vocab_size, shared_embeddings=not args.separate_embeddings)
    text = report.as_json() if args.json else report.as_markdown() if args.markdown else report.as_text()
    print(text, flush=True)  # a closed pipe must be noticed while main can still catch it
    return 0


def list_archs() -> Report:
    """Every arch with its size and the paper's name for its configuration."""
    data = []
    for arch, (size_name, _) in ARCHS.items():
        size = SIZES[size_name]
        layers = "+".join(str(getattr(size, f"{stack}_layers")) for stack in size.stacks)
        data.append(
            {
                "arch": arch,
                "size": f"{layers} layers, d {size.embed_dim}, d_ff {size.ffn_dim}, {size.heads} heads",
                "configuration": configuration_of(arch).paper,
            }
        )
    return Report(("arch", "size", "configuration"), [list(line.values()) for line in data], data, words=(0, 1, 2))


def arch_counts(tokens: Sequence[str], vocab_size: int | None = None, *, shared_embeddings: bool = True) -> Report:
    """The counts of the archs among the tokens, all with the flags among the tokens.

    Args:
        tokens: names of archs and flags of the model, in any order.
        vocab_size: the paper's English-German one if not given.
        shared_embeddings: one embedding matrix for source, target and output.

    Raises:
        InputError: with every problem of the tokens.
    """
    from owf_fairseq.parameters import BLOCKS, count_parameters, given_flags, split_archs_and_flags

    vocab_size = paper.VOCAB_SIZES["en-de"] if vocab_size is None else vocab_size
    archs, flags = split_archs_and_flags(tokens)
    if not archs:
        given_flags(next(iter(ARCHS)), flags)  # any arch will do to find what is wrong
        raise InputError("name at least one architecture (`owf params --list` prints them all), or give `--paper`")
    counts, problems = [], []
    for arch in archs:
        try:
            counts.append(count_parameters(arch, vocab_size, flags, shared_embeddings))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(dict.fromkeys(problems))

    blocks = (short_name(block) for block in BLOCKS)
    header = ("arch", *blocks, "total", "% of individual", "matching d_ff'")
    data = {
        "vocab_size": vocab_size,
        "shared_embeddings": shared_embeddings,
        "archs": [_as_json(count) for count in counts],
    }
    embeddings = "one matrix for all embeddings" if shared_embeddings else "embeddings as fairseq's flags say"
    notes = (
        f"Vocabulary of {vocab_size:,} symbols; {embeddings}. A shared tensor counts once, an FFN of both stacks under "
        "enc. FFN.",
        "% of individual: of the individual model of that size with these flags, patterns and FFN widths left out.",
        "matching d_ff': the width of every FFN that is left at which the model is as large as the individual one.",
    )
    return Report(header, [_as_row(count) for count in counts], data, notes)


def short_name(block: str) -> str:
    """A block's name as the head of a column."""
    for long, short in (("decoder cross", "cross"), ("encoder", "enc."), ("decoder", "dec."), ("attention", "attn")):
        block = block.replace(long, short)
    return block


def _refuse_more(args: argparse.Namespace) -> None:
    """`--list` and `--paper` have nothing to choose."""
    flag = "--list" if args.list else "--paper"
    given = list(args.fairseq_flags)
    given += ["--vocab-size"] if args.vocab_size is not None else []
    given += ["--separate-embeddings"] if args.separate_embeddings else []
    if given:
        raise InputError(f"`{flag}` takes neither architectures nor model flags, but got `{' '.join(given)}`")


def _as_row(count: ParameterCount) -> list[str]:
    return [
        count.arch,
        *map(number, count.by_block.values()),
        number(count.total),
        f"{count.percent:.1f}",
        number(count.matching_ffn_dim),
    ]


def _as_json(count: ParameterCount) -> dict[str, Any]:
    return {
        "arch": count.arch,
        "flags": count.flags,
        "total": count.total,
        "by_block": count.by_block,
        "percent": round(count.percent, 2),
        "individual_total": count.individual_total,
        "matching_ffn_dim": count.matching_ffn_dim,
    }
