"""`owf corpus`: the quickstart's parallel text."""

from __future__ import annotations

import argparse

HELP = "extract the quickstart's parallel text from the wheel of homeassistant"
EXAMPLE = "owf corpus --wheel homeassistant-2026.11.0-py3-none-any.whl --langs en-de --output corpus"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the subcommand."""
    parser.add_argument("--wheel", required=True, metavar="FILE", help="the wheel, as pip download fetched it")
    parser.add_argument(
        "--langs", required=True, metavar="SRC-TGT", help="source and target language: en-de, en-ro, en-zh-Hans, ..."
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to make: {train,valid,test}.{SRC,TGT}")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N pairs in each split (for trials)")


def run(args: argparse.Namespace) -> int:
    """Extract, write and say how many pairs there are."""
    from owf_fairseq.data import quickstart_corpus as corpus
    from owf_fairseq.errors import InputError
    from owf_fairseq.files.folders import check_output

    problems = check_output(args.output, corpus.COMMAND)
    if args.limit is not None and args.limit < 1:
        problems.append(f"--limit must be at least 1, but is {args.limit}")
    try:
        extracted = corpus.extract(args.wheel, args.langs, args.limit)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    corpus.write(extracted, args.output)
    counts = extracted.counts
    langs = f"{extracted.source}-{extracted.target}"
    print(f"{langs}: {counts['joined']} pairs, of them {counts['filtered']} after filtering")
    print(", ".join(f"{split} {counts[split]}" for split in corpus.SPLITS) + f" pairs -> {args.output}")
    return 0
