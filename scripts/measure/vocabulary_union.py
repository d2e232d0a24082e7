#!/usr/bin/env python3
"""How many rows have embeddings of two SentencePiece vocabularies, one a language, joined into one dictionary?

example:
  python scripts/measure/vocabulary_union.py --source runs/multi30k/raw/train.en --target runs/multi30k/raw/train.de
  python scripts/measure/vocabulary_union.py --source wmt/train.en --target wmt/train.de --sizes 32000 --sample 1000000

Learns both vocabularies of each size as `owf prepare --separate-vocabularies` does, and prints how many pieces each has
(a small text gives fewer than were asked for: such a size says nothing of a large text), how many are in both, and
how many rows the dictionary has, fairseq's symbols included and filled up to a multiple of 8.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from owf_fairseq.data.preparation import padded
from owf_fairseq.data.segmentation import SPECIALS, SeparateSentencePieceSegmentation, clean
from owf_fairseq.data.train_segmentation import Learning, TrainingText, learn_segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import stream_lines, write_lines
from owf_fairseq.paper.rows import VOCAB_SIZES
from owf_fairseq.tables import markdown_table

FULL = 0.99
"""Share of the pieces that were asked for, from which on a vocabulary is as large as it should be."""


def measure(sources: Sequence[str], targets: Sequence[str], size: int, sample: int) -> dict[str, str]:
    """The cells of a row of the table: both vocabularies of a size.

    Args:
        sources, targets: text files of the two languages.
        size: of each vocabulary, fairseq's four symbols included.
        sample: lines of each side that are learnt from, from its start.

    Raises:
        InputError: a file can't be read, or has too many characters for the size.
    """

    def side(paths: Sequence[str]) -> Iterator[str]:
        lines = itertools.chain.from_iterable(map(stream_lines, paths))
        return (clean(line) for line in itertools.islice(lines, sample))

    learning = Learning(vocab_size=size, separate_vocabularies=True)
    with tempfile.TemporaryDirectory() as folder:
        made = learn_segmentation(folder, TrainingText("source", "target", (side(sources), side(targets))), learning)
    assert isinstance(made, SeparateSentencePieceSegmentation)
    own = [model.get_piece_size() - len(SPECIALS) for model in made.processors.values()]
    union = made.symbols([], None)
    rows = len(SPECIALS) + len(padded(union))
    in_both = sum(own) - len(union)
    full = min(own) >= FULL * (size - len(SPECIALS))
    return {
        "asked for, each": f"{size:,}",
        "source pieces": f"{own[0]:,}",
        "target pieces": f"{own[1]:,}",
        "in both": f"{in_both:,}",
        "% of the smaller": f"{100 * in_both / min(own):.0f}",
        "rows": f"{rows:,}",
        "rows / asked for": f"{rows / size:.2f}" if full else "-",
    }


def main(argv: list[str] | None = None) -> int:
    """Measures, prints a table, and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", nargs="+", required=True, metavar="FILE", help="text of the one language")
    parser.add_argument("--target", nargs="+", required=True, metavar="FILE", help="text of the other")
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[2000, 4000, 8000, 16000, 32000], metavar="N", help="of each vocabulary"
    )
    parser.add_argument("--sample", type=int, default=1_000_000, metavar="N", help="lines of each side (1000000)")
    parser.add_argument("--json", metavar="FILE", help="also write the table as JSON")
    args = parser.parse_args(argv)
    try:
        rows = [measure(args.source, args.target, size, args.sample) for size in args.sizes]
    except InputError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return 2
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]))
    print(f"\nThe paper's English-German counts need {VOCAB_SIZES['en-de']:,} rows.")
    if args.json:
        words = [Path(__file__).name, *(sys.argv[1:] if argv is None else argv)]
        data = {"made_by": f"python scripts/measure/{shlex.join(words)}", "rows": rows}
        write_lines(args.json, json.dumps(data, indent=1, ensure_ascii=False).split("\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
