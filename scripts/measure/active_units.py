#!/usr/bin/env python3
"""Would it pay to multiply only by the units of an encoder's FFN that are active after the ReLU?

    python scripts/measure/active_units.py runs/quickstart-en-de/owf_small_one_wide_ffn/checkpoint_best.pt \
        --input runs/quickstart-en-de/raw/test.en

Prints, by length of the sentence, the share of units that are active for a word, and for any word: the latter have to
be read and multiplied. Then, for the second matrix of a One Wide FFN of size big, milliseconds of the whole product,
with the matrix packed, and of one with the rows of active units gathered from the transposed matrix.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

BIG = (1024, 49_152)


def active_units(checkpoint: str, data: str | None, lines: list[str], group: int) -> list[list[str]]:
    """A row for each group of lengths: pieces, layer passes, share of units active for a word, and for any word."""
    from owf_fairseq.decoding.fairseq_backend import FairseqBackend
    from owf_fairseq.decoding.search import SearchOptions

    backend = FairseqBackend.from_checkpoint(checkpoint, data, cpu=True, packed=False)
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)

    def look(module: Any, inputs: Any) -> None:
        active = inputs[0].flatten(0, -2) != 0
        shares = (active.float().mean().item(), active.any(0).float().mean().item())
        found[active.size(0) // group * group].append(shares)

    blocks = {layer.fc2 for layer in backend.models[0].encoder.layers if layer.has_feed_forward}
    for block in blocks:
        block.register_forward_pre_hook(look)
    encoder_only = SearchOptions(max_len_a=0, max_len_b=0, min_len=0)
    for line in lines:
        pieces = backend.segmentation().encode(line).split()
        if 0 < len(pieces) <= backend.max_source_length:
            backend.search([pieces], encoder_only)
    return [
        [
            f"{start} to {start + group - 1}",
            str(len(shares)),
            *(f"{100 * sum(column) / len(column):.1f}" for column in zip(*shares, strict=True)),
        ]
        for start, shares in sorted(found.items())
    ]


def products(rows: int, shares: list[float], runs: int) -> list[list[str]]:
    """A row for each share of active units: milliseconds of the packed product, and of the gathered one."""
    import torch

    from owf_fairseq.decoding.packed import PackedLinear

    outputs, units = BIG
    linear = torch.nn.Linear(units, outputs)
    whole, transposed, bias = PackedLinear(linear), linear.weight.detach().t().contiguous(), linear.bias.detach()

    def gathered(x: torch.Tensor) -> torch.Tensor:
        active = (x != 0).any(0).nonzero().squeeze(1)
        return torch.addmm(bias, x.index_select(1, active), transposed.index_select(0, active))

    def milliseconds(product: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> float:
        start = time.perf_counter()
        product(x)
        return 1000 * (time.perf_counter() - start)

    table = []
    with torch.inference_mode():
        for share in shares:
            x = torch.randn(rows, units).relu_() * (torch.rand(units) < share)
            times = [(milliseconds(whole, x), milliseconds(gathered, x)) for _ in range(runs + 1)][1:]
            medians = (f"{statistics.median(column):.1f}" for column in zip(*times, strict=True))
            table.append([str(rows), f"{100 * share:.0f}", *medians])
    return table


def main(argv: list[str] | None = None) -> int:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="whose encoder is looked at")
    parser.add_argument("--input", required=True, metavar="FILE", help="text to encode")
    parser.add_argument("--data", metavar="DIR", help="the checkpoint's binary data (default: where it was trained)")
    parser.add_argument("--sentences", type=int, default=500, metavar="N", help="lines to encode (default: 500)")
    parser.add_argument("--rows", type=int, default=27, metavar="N", help="of the products (default: 27)")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="alternating runs (default: 7)")
    args = parser.parse_args(argv)
    import torch

    from owf_fairseq.errors import InputError
    from owf_fairseq.files.lines import read_lines
    from owf_fairseq.tables import markdown_table

    torch.set_num_threads(1)
    try:
        found = active_units(args.checkpoint, args.data, read_lines(args.input)[: args.sentences], group=6)
    except InputError as error:
        print("\n".join(f"active_units.py: {problem}" for problem in error.problems), file=sys.stderr)
        return 2
    print(markdown_table(("pieces", "layer passes", "active for a word, %", "for any word, %"), found), end="\n\n")
    timed = products(args.rows, [0.05, 0.1, 0.2, 0.3, 0.4, 0.5], args.runs)
    print(markdown_table(("rows", "active, %", "whole and packed, ms", "gathered, ms"), timed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
