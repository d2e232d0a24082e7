"""Flags of all subcommands that translate text."""

from __future__ import annotations

import argparse
import os

from owf_fairseq.decoding.backends import BACKENDS


def add_backend(parser: argparse.ArgumentParser) -> None:
    """Which program decodes."""
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        help="the program that decodes (default: ctranslate2 for a folder, fairseq for checkpoints)",
    )


def add_data(parser: argparse._ActionsContainer) -> None:
    """What the model was trained on."""
    parser.add_argument("--data", metavar="DIR", help="the model's binary data (default: where it was trained)")
    parser.add_argument(
        "--segmentation",
        metavar="DIR",
        help="a folder with another record of how text becomes pieces, or `none`: the text is in pieces already "
        "(default: as recorded beside the data)",
    )


def add_search(parser: argparse._ActionsContainer) -> None:
    """How it searches."""
    parser.add_argument("--beam", type=int, default=5, metavar="N", help="beam size (default: 5)")
    parser.add_argument("--lenpen", type=float, default=1.0, metavar="X", help="length penalty (default: 1.0)")
    parser.add_argument(
        "--shortlist",
        action=argparse.BooleanOptionalAction,
        help="with an exported model that has a shortlist: let a translation have symbols only that are in it for its "
        "own line, or for the lines of its batch (default: if the folder has one)",
    )


def add_batches(parser: argparse._ActionsContainer) -> None:
    """How large batches are."""
    parser.add_argument(
        "--max-tokens", type=int, default=2000, metavar="N", help="pieces of a batch, with padding (default: 2000)"
    )
    parser.add_argument("--batch-size", type=int, metavar="N", help="sentences of a batch (default: no limit)")


def add_device(parser: argparse._ActionsContainer) -> None:
    """Where it is computed."""
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    parser.add_argument(
        "--fp16", action="store_true", help="half precision, on a GPU; an exported model has its own precision"
    )


BUFFER = 10_000
"""Lines that are sorted together, if not said otherwise."""


def paths_of(checkpoint: str) -> list[str]:
    """The paths of an ensemble, or the one path."""
    return [checkpoint] if os.path.exists(checkpoint) else checkpoint.split(os.pathsep)
