"""`owf pairs`: parallel text copied, checked and joined."""

from __future__ import annotations

import argparse

HELP = "check parallel text line by line and join corpora, without empty or long pairs if you like"
EXAMPLE = (
    "owf pairs --input europarl.en.gz europarl.de.gz --input news.en news.de --output train.en train.de \\\n"
    "    --drop-empty --max-words 250"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.add_argument(
        "--input",
        nargs=2,
        action="append",
        required=True,
        metavar=("SRC", "TGT"),
        help="the two files of a corpus, plain or gzipped, UTF-8; given again, the next corpus follows",
    )
    parser.add_argument("--output", nargs=2, required=True, metavar=("SRC", "TGT"), help="the two files to write")
    parser.add_argument("--overwrite", action="store_true", help="replace them, whatever they are")
    parser.add_argument("--limit", type=int, metavar="N", help="write the first N pairs only")
    parser.add_argument("--lines", type=int, metavar="N", help="stop with an error if there are not N pairs to read")
    parser.add_argument("--drop-empty", action="store_true", help="leave out pairs with an empty side")
    parser.add_argument("--max-words", type=int, metavar="N", help="leave out pairs with a side of more than N words")
    parser.add_argument("--json", metavar="FILE", help="also write how many pairs of each corpus were read and written")


def run(args: argparse.Namespace) -> int:
    """Copies, and says how many pairs."""
    from owf_fairseq.data.pairs import Rules, copy_pairs

    rules = Rules(args.limit, args.lines, args.drop_empty, args.max_words)
    copied = copy_pairs(args.input, tuple(args.output), rules, args.overwrite, args.json)
    if copied is None:
        return 0
    left_out = f" ({copied.empty} with an empty side, {copied.long} too long)" if copied.empty + copied.long else ""
    print(f"{copied.written} of {copied.read} pairs{left_out} -> {' '.join(args.output)}")
    return 0
