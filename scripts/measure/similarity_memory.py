#!/usr/bin/env python3
"""Memory that LNS needs for a large test set, and how long it takes.

Two random representations of as many sentences are compared, block by block. Prints the peak resident memory of the
whole process, Python and torch included, and the time of a block, with what all blocks would take. Every block needs
the same, so that a few of them show the peak.

example:
  python scripts/measure/similarity_memory.py --sentences 100000 --dimensions 1024 --blocks 3
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import islice

import torch

from owf_fairseq.analysis import lns
from owf_fairseq.speed.memory import peak_resident


def main(argv: list[str] | None = None) -> int:
    """Measures and prints one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=100_000, metavar="N", help="(default: 100000)")
    parser.add_argument("--dimensions", type=int, default=1024, metavar="N", help="of the model (default: 1024)")
    parser.add_argument("--blocks", type=int, metavar="N", help="stop after so many (default: all)")
    args = parser.parse_args(argv)
    if min(args.sentences - 1, args.dimensions, args.blocks or 1) < 1:
        parser.error("--dimensions and --blocks must be at least 1, and --sentences at least 2")
    k = lns.neighborhood_size(args.sentences)
    generator = torch.Generator().manual_seed(1)
    one = torch.randn(args.sentences, args.dimensions, generator=generator)
    other = one + torch.randn(one.shape, generator=generator)
    blocks = list(lns.blocks(args.sentences, k, 2))
    begun = time.monotonic()
    done = list(islice(lns.jaccard_by_block([one], [other], k), args.blocks))
    seconds = (time.monotonic() - begun) / len(done)
    minutes = seconds * len(blocks) / 60
    print(
        f"LNS of {args.sentences:,} sentences, {args.dimensions:,} dimensions, k = {k:,}: {len(done)} of {len(blocks)} "
        f"blocks, peak {peak_resident() / 1e9:.2f} GB, {seconds:.1f} s a block, {minutes:.0f} min for all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
