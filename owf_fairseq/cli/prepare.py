"""`owf prepare`: raw parallel text to fairseq's binary data."""

from __future__ import annotations

import argparse
import os
import sys

HELP = "turn raw parallel text into the binary data that fairseq-train reads, with one dictionary for both languages"
EXAMPLE = (
    "owf prepare --train corpus/train --valid corpus/valid --test corpus/test --langs en-de --vocab-size 3000 \\\n"
    "    --output data\n"
    "owf prepare --train wmt/train --valid wmt/valid --langs en-de --shards 10 --output data"
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
        metavar="KIND",
        help="sentencepiece (unigram; the default), moses-bpe (Moses tokens and joint BPE) or none (the text is in "
        "pieces already, with spaces between); it is recorded beside the data, where `owf translate` finds it",
    )
    parser.add_argument(
        "--vocab-size",
        type=int,
        metavar="N",
        help="size of the vocabulary that both languages share (default: 32000); a small corpus may give fewer. The "
        "dictionary is filled up to a multiple of 8, as fairseq-preprocess does. With moses-bpe, the number of merge "
        "operations",
    )
    parser.add_argument(
        "--separate-vocabularies",
        action="store_true",
        help="a SentencePiece model of --vocab-size for each language, learnt from its side alone, and one dictionary "
        "with the pieces of both",
    )
    parser.add_argument(
        "--normalization",
        metavar="RULE",
        help="SentencePiece's rule for text before it is cut: nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf (cf: in small "
        "letters), or identity (the default here: a model learns to write the characters that the references have, "
        "full-width ones too; SentencePiece's own default is nmt_nfkc). It is recorded in the model",
    )
    parser.add_argument(
        "--lowercase",
        action="store_true",
        help="write text in small letters, with Moses' tokens after these are found; it is recorded, so that "
        "`owf translate` does the same with its input",
    )
    parser.add_argument(
        "--character-coverage",
        type=float,
        metavar="SHARE",
        help="share of the training text's characters that get a piece (default: 0.9999)",
    )
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="training pairs that the segmentation is learnt from, drawn with a fixed seed from all parts of the "
        "corpus (default: 1000000, or all if there are fewer). SentencePiece holds about 25 bytes for each of their "
        "characters: 6 GB for a million pairs of 120 characters a side",
    )
    parser.add_argument(
        "--segmentation-text",
        nargs="+",
        metavar="FILE",
        help="text that SentencePiece learns from instead of the training pairs, all of it (the same memory a "
        "character): a balanced sample of several languages, say",
    )
    parser.add_argument(
        "--like",
        metavar="DIR",
        help="take the segmentation and the dictionary of a folder that `owf prepare` made, for more data or for other "
        "languages; nothing is learnt",
    )
    parser.add_argument(
        "--shards",
        type=int,
        default=1,
        metavar="N",
        help="make folders DIR/shard-00, ... with a part of the training data each, to train with "
        "`DIR/shard-00:DIR/shard-01:...`: fairseq reads one of them an epoch, and each of its processes holds about 80 "
        "bytes for each pair of it (default: 1, DIR itself)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that cut text into pieces and write binary data (default: the cores, at most 32); each needs "
        "about 250 MB of memory",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="folder to make; until it is complete, what is done is in .DIR.partial beside it, and after an "
        "interruption the same command goes on from there; when it is complete, the same command does nothing as long "
        "as no file has changed",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="make DIR again, also if it was made with other settings"
    )


def run(args: argparse.Namespace) -> int:
    """Prepare, and say what is in the folder."""
    from owf_fairseq.data.prepare import prepare
    from owf_fairseq.data.work import WorkerLost

    prefixes = {split: getattr(args, split) for split in ("train", "valid", "test") if getattr(args, split)}
    names = "vocab_size character_coverage segmentation sample segmentation_text like shards workers overwrite".split()
    names += ["separate_vocabularies", "normalization", "lowercase"]
    try:
        made = prepare(prefixes, args.langs, args.output, **{name: getattr(args, name) for name in names})
    except (WorkerLost, OSError) as error:
        print(f"owf prepare: {error}", file=sys.stderr)
        return 1
    if made.dropped:
        print(f"train: {made.dropped} pairs with an empty side were left out")
    for split, pairs in made.pairs.items():
        counts = []
        for lang in (made.source, made.target):
            tokens, unknown = made.tokens[f"{split}.{lang}"], made.unknown[f"{split}.{lang}"]
            counts.append(f"{tokens} {lang} pieces ({unknown} unknown)")
        print(f"{split}: {pairs} pairs, {', '.join(counts)}")
    print(f"vocabulary of {made.vocabulary} for both languages -> {args.output}")
    if len(made.shards) > 1:
        pairs_of = sorted(made.shards.values())
        print(f"{len(pairs_of)} shards of {pairs_of[0]} to {pairs_of[-1]} training pairs, to train on with")
        print(os.pathsep.join(os.path.join(args.output, name) for name in made.shards))
    return 0
