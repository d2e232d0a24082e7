"""`owf shortlist`: from training data to the symbols that a translation may have."""

from __future__ import annotations

import argparse

HELP = "make a lexical shortlist, with which CTranslate2 decodes several times faster"
EXAMPLE = "owf shortlist runs/student/data --output runs/student/shortlist.txt --json runs/student/shortlist.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.description = (
        f"{HELP}.\nThe output layer of a small model is most of its work. A shortlist lets a translation have the "
        "symbols only that\nthe symbols of its source are translated with, some hundred instead of some ten thousand. "
        "It is made of word\nalignments of the training data, by eflomal. Reported is which share of the validation "
        "data's reference tokens is\nin the shortlist of their sentence. After an interruption, the same command goes "
        "on where it was."
    )
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="the folder of binary data that the model is trained on, or its shards"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="the shortlist, for `owf export --shortlist`")
    parser.add_argument("--json", metavar="FILE", help="write what is reported as JSON")
    parser.add_argument("--overwrite", action="store_true", help="replace --output and --json, whatever they are")
    parser.add_argument("--langs", metavar="SRC-TGT", help="the direction (default: as the data's files are named)")
    parser.add_argument(
        "--best",
        type=int,
        default=300,
        metavar="K",
        help="target symbols for each source symbol, by probability (default: 300)",
    )
    parser.add_argument(
        "--frequent",
        type=int,
        default=200,
        metavar="N",
        help="most frequent target symbols, which any translation may have (default: 200), beside digits, punctuation "
        "and what its source has itself",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=5_000_000,
        metavar="N",
        help="training pairs that are aligned, taken evenly from all (default: 5000000)",
    )


def run(args: argparse.Namespace) -> int:
    """Makes it, and says what it covers."""
    from owf_fairseq.shortlist.selection import ShortlistOptions
    from owf_fairseq.shortlist.shortlist import make_shortlist

    options = ShortlistOptions(args.best, args.frequent, args.pairs)
    made = make_shortlist(args.data, args.output, args.json, args.langs, options, args.overwrite)
    if made is None:
        return 0
    skipped = f" ({made.skipped:,} left out: empty or too long)" if made.skipped else ""
    print(
        f"{made.pairs:,} pairs aligned{skipped}; {made.always:,} symbols for any translation, and {made.targets:.1f} "
        f"for each of {made.sources:,} source symbols -> {args.output}"
    )
    found = made.coverage
    if found is not None:
        print(
            f"validation data: {found.share:.2%} of {found.tokens:,} reference tokens are in the shortlist of their "
            f"sentence, all of them in {found.whole:,} of {found.sentences:,} sentences; a shortlist has "
            f"{found.symbols:,.0f} of {found.vocabulary:,} symbols in the mean"
        )
    return 0
