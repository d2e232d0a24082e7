"""Makes what the published figures of IWSLT14 are scored on: Moses' tokens in small letters, hyphens within words kept.

example:
  python scripts/iwslt14_de_en/tokens.py runs/iwslt14_de_en/data --translation runs/iwslt14_de_en/iwslt/test.pieces
  python scripts/iwslt14_de_en/tokens.py runs/iwslt14_de_en/data --text runs/iwslt14_de_en/original/test.en

Of a translation in pieces, FILE.pieces, it writes FILE.en, the text, and FILE.tok; of a text, FILE.en, it writes
FILE.tok. The tokens of a translation are those that the model wrote: Moses would not find them again in text of small
letters.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sacremoses import MosesTokenizer

from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import read_lines, write_lines


def tokens_of_pieces(pieces: str) -> str:
    """The tokens of a line of BPE pieces. `owf prepare` splits words at hyphens, and fairseq's preparation does not."""
    return f"{pieces} ".replace("@@ ", "").strip().replace(" @-@ ", "-").lower()


def main(argv: list[str] | None = None) -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="what `owf prepare` made")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--translation", type=Path, metavar="FILE.pieces", help="of `owf translate --segmentation none`")
    what.add_argument("--text", type=Path, metavar="FILE.en", help="in English, as it was, with capitals")
    args = parser.parse_args(argv)
    try:
        if args.translation is None:
            moses = MosesTokenizer("en")
            lines = read_lines(args.text)
            tokens = [moses.tokenize(line, return_str=True).lower() for line in lines]
            write_lines(args.text.with_suffix(".tok"), tokens)
            return 0
        segmentation, lines = Segmentation.load(args.data), read_lines(args.translation)
        write_lines(args.translation.with_suffix(".en"), map(segmentation.decode, lines))
        write_lines(args.translation.with_suffix(".tok"), map(tokens_of_pieces, lines))
    except InputError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
