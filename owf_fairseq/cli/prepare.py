"""`owf prepare`: raw parallel text to fairseq's binary data."""

from __future__ import annotations

import argparse

HELP = "turn raw parallel text into the binary data that fairseq-train reads, with one vocabulary for both languages"
EXAMPLE = (
    "owf prepare --train corpus/train --valid corpus/valid --test corpus/test --langs en-de --vocab-size 3000 \\\n"
    "    --output data"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the subcommand."""
    for split in ("train", "valid", "test"):
        parser.add_argument(
            f"--{split}",
            required=split != "test",
            metavar="PREFIX",
            help=f"{split} text: the files PREFIX.SRC and PREFIX.TGT, one sentence a line",
        )
    parser.add_argument("--langs", required=True, metavar="SRC-TGT", help="source and target language: en-de, ...")
    parser.add_argument(
        "--segmentation",
        default="sentencepiece",
        metavar="KIND",
        help="sentencepiece (unigram; the default), moses-bpe (Moses tokens and joint BPE) or none (the text is in "
        "pieces already, with spaces between); it is recorded beside the data, where `owf translate` finds it",
    )
    parser.add_argument(
        "--vocab-size",
        type=int,
        default=32000,
        metavar="N",
        help="size of the vocabulary that both languages share (default: 32000); a small corpus may give fewer. With "
        "moses-bpe, the number of merge operations",
    )
    parser.add_argument(
        "--character-coverage",
        type=float,
        default=0.9999,
        metavar="SHARE",
        help="share of the training text's characters that get a piece (default: 0.9999)",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to make")


def run(args: argparse.Namespace) -> int:
    """Prepare, and say what is in the folder."""
    from owf_fairseq.data.prepare import prepare

    prefixes = {split: getattr(args, split) for split in ("train", "valid", "test") if getattr(args, split)}
    made = prepare(prefixes, args.langs, args.output, args.vocab_size, args.character_coverage, args.segmentation)
    if made.dropped:
        print(f"train: {made.dropped} pairs with an empty side were left out")
    for split, pairs in made.pairs.items():
        counts = []
        for lang in (made.source, made.target):
            tokens, unknown = made.tokens[f"{split}.{lang}"], made.unknown[f"{split}.{lang}"]
            counts.append(f"{tokens} {lang} pieces ({unknown} unknown)")
        print(f"{split}: {pairs} pairs, {', '.join(counts)}")
    print(f"vocabulary of {made.vocabulary} for both languages -> {args.output}")
    return 0
