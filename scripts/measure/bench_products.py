#!/usr/bin/env python3
"""How fast matrix products with few rows are, torch's own and with packed matrices: why decoding packs them.

    python scripts/measure/bench_products.py
    python scripts/measure/bench_products.py --rows 5 27 --shapes 4096x1024 49152x1024 --runs 9

Of each shape (output x input) more copies are multiplied in turn than the caches hold; both kinds in alternation.
Prints medians: gigabytes of weights that are read a second, and arithmetic.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

BYTES = 150e6
"""Of all copies of a matrix together: more than caches hold."""


def measure(rows: int, outputs: int, inputs: int, runs: int) -> tuple[float, float]:
    """Seconds of a product, plain and packed: medians of alternating runs."""
    import torch

    from owf_fairseq.decoding.packed import PackedLinear

    copies = [torch.nn.Linear(inputs, outputs) for _ in range(max(1, int(BYTES / (4 * outputs * inputs))))]
    packed = [PackedLinear(linear) for linear in copies]
    x = torch.randn(rows, inputs)

    def seconds(products: list[Callable[[torch.Tensor], torch.Tensor]]) -> float:
        start = time.perf_counter()
        for product in products:
            product(x)
        return (time.perf_counter() - start) / len(products)

    with torch.inference_mode():
        both = [(seconds([*copies]), seconds([*packed])) for _ in range(runs + 1)][1:]  # the first is for warming up
    plain, fast = (statistics.median(times) for times in zip(*both, strict=True))
    return plain, fast


def shape(text: str) -> tuple[int, int]:
    """``4096x1024`` as numbers."""
    outputs, _, inputs = text.partition("x")
    return int(outputs), int(inputs)


def main(argv: list[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5, 27], metavar="N", help="rows of x (default: 5 27)")
    parser.add_argument(
        "--shapes",
        type=shape,
        nargs="+",
        default=[shape(text) for text in ("1024x1024", "4096x1024", "32000x1024", "49152x1024", "1024x49152")],
        metavar="OUTxIN",
        help="of the matrices (default: those of size big)",
    )
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="alternating runs (default: 7)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of torch (default: 1)")
    args = parser.parse_args(argv)
    import torch

    from owf_fairseq import compat
    from owf_fairseq.tables import markdown_table

    if not compat.can_pack():
        print("bench_products.py: this torch has no packed products of oneDNN", file=sys.stderr)
        return 1
    torch.set_num_threads(args.threads)
    rows = []
    for number in args.rows:
        for outputs, inputs in args.shapes:
            times = measure(number, outputs, inputs, args.runs)
            cells = [
                f"{amount / seconds / 1e9:.1f}"
                for amount in (4 * outputs * inputs, 2 * number * outputs * inputs)
                for seconds in times
            ]
            rows.append([str(number), f"{outputs} x {inputs}", *cells, f"{times[0] / times[1]:.2f}"])
    header = ("rows", "matrix", "torch, GB/s", "packed, GB/s", "torch, GFLOP/s", "packed, GFLOP/s", "speed")
    print(markdown_table(header, rows, words=(1,)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
