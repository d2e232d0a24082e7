"""`owf export`: a checkpoint to a folder that another program serves."""

from __future__ import annotations

import argparse

from owf_fairseq.cli._decoding import add_data

HELP = "export a checkpoint to CTranslate2, which serves it several times faster, with the same translations"
EXAMPLE = (
    "owf export runs/my-model/checkpoint_best.pt --to ctranslate2 --output runs/my-model/ctranslate2\n"
    "owf export runs/my-model/checkpoint_best.pt --to ctranslate2 --quantization int8 --output runs/my-model/int8"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    from owf_fairseq.decoding.exported import QUANTIZATIONS

    parser.description = (
        f"{HELP}.\nEvery encoder-decoder model of this plugin and fairseq's transformer can be exported; what can't is "
        "refused\nbefore anything is written. Shared blocks are stored once. The folder holds the vocabulary, the "
        "segmentation,\nthe flags of the training and a README with an example in Python. Before it gets its name, the "
        "log-probabilities\nof its translations are compared with the checkpoint's."
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="of fairseq-train")
    parser.add_argument("--to", choices=("ctranslate2",), default="ctranslate2", help="the format (the only one)")
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder to make")
    parser.add_argument(
        "--quantization",
        default="float32",
        metavar="TYPE",
        help=f"of the weights, one of {', '.join(QUANTIZATIONS)} (default: float32)",
    )
    parser.add_argument(
        "--shortlist",
        metavar="FILE",
        help="of `owf shortlist`: the folder gets it, and `owf translate` and `owf benchmark` use it",
    )
    parser.add_argument(
        "--verify",
        metavar="FILE",
        help="text in the source language to verify the exported model on (default: the first sentences of the "
        "checkpoint's validation data)",
    )
    add_data(parser)


def run(args: argparse.Namespace) -> int:
    """Exports, and says what was made."""
    from owf_fairseq.export.export import export

    made = export(
        args.checkpoint, args.output, args.quantization, args.verify, args.data, args.segmentation, args.shortlist
    )
    print(
        f"{made.parameters:,} parameters in {made.weights_bytes:,} bytes -> {made.folder}\n"
        f"verified: {made.verification}",
        flush=True,
    )
    if made.shortlist is not None:
        print(f"shortlist verified: {made.shortlist}", flush=True)
    return 0
