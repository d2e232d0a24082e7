"""`owf inspect`: what a checkpoint holds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from owf_fairseq.tables import numbers

if TYPE_CHECKING:
    from owf_fairseq.checkpoints.inspection import Inspection

HELP = "print what a checkpoint holds: its model layer by layer, its training, and whether shared weights agree"
EXAMPLE = "owf inspect runs/my-model/checkpoint_best.pt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.description = (
        f"{HELP}.\nIt needs neither the data, nor the task, nor the --user-dir that is recorded in the file. Status 1 "
        "if the file does\nnot hold the model that it says."
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="of this plugin's models, or of fairseq's transformer")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the facts.

    Returns:
        0; 1 if weights are not those of the model, or differ where it shares them.
    """
    import dataclasses
    import json

    from owf_fairseq.checkpoints.inspection import inspect
    from owf_fairseq.errors import printable

    found = inspect(args.checkpoint)
    if args.json:
        print(json.dumps(dataclasses.asdict(found), indent=2, default=str), flush=True)
    else:
        print("\n".join(printable(f"{name:<24} {value}".rstrip()) for name, value in lines(found)), flush=True)
    return 1 if found.ties or found.faults else 0


def lines(found: Inspection) -> list[tuple[str, str]]:
    """The facts, one a line: its name and its value."""
    from owf_fairseq.checkpoints.inspection import block_numbers
    from owf_fairseq.checkpoints.naming import configuration_label
    from owf_fairseq.checkpoints.stored_model import typed

    def both(values: dict[str, object]) -> str:
        return " + ".join(map(str, values.values() if len(set(values.values())) > 1 else list(values.values())[:1]))

    facts = [
        ("file", f"{found.file} ({found.bytes / 1e6:,.1f} MB)"),
        ("arch", f"{found.arch} ({configuration_label(found.configuration, found.arch)})"),
        (
            "size",
            f"{' + '.join(map(str, found.layers.values()))} layers, d {both({**found.embed_dim})}, "
            f"{both({**found.heads})} heads, {both({**found.norm})}-norm",
        ),
    ]
    for block, pattern in found.blocks.items():
        stack, _, kind = block.partition(" ")
        width = found.widths[stack] if kind == "FFN" else None
        note = f"   d_ff {numbers(width)}" if width is not None else ""
        if block == "decoder FFN" and found.one_ffn_for_both_stacks:
            note += ", the encoder's"
        facts.append((block, block_numbers(pattern) + note))
    facts += [
        ("parameters", f"{found.parameters:,} ({', '.join(found.dtypes)})"),
        ("flags", " ".join(typed(found.flags)) or "as the arch has them"),
        ("training", f"epoch {'-' if found.epoch is None else found.epoch}, {found.updates:,} updates"),
        ("validation", _validation(found)),
        ("optimizer", f"{found.optimizer or 'none'}: {found.resume}"),
    ]
    if found.made_by:
        facts.append(("made by", f"{found.made_by}, from {_origin(found.made_from)}"))
    return [*facts, *_ties(found), *(("FAULT", fault) for fault in found.faults)]


def _validation(found: Inspection) -> str:
    if found.score is None:
        return "not validated"
    best = f" (best until then {found.best:.3f})" if found.best is not None else ""
    return f"{found.metric} {found.score:.3f}{best}"


def _ties(found: Inspection) -> list[tuple[str, str]]:
    """Whether the shared weights are one."""
    if found.ties:
        return [("TIES BROKEN", problem) for problem in found.ties]
    if not found.tied:
        return [("ties", "the model shares nothing")]
    stored = f"and {found.copies} equal copies" if found.copies else "each stored once"
    return [("ties", f"hold: {found.tied} shared tensor{'s' if found.tied > 1 else ''}, {stored}")]


def _origin(made_from: object) -> str:
    if isinstance(made_from, dict):
        return f"{made_from['file']} ({made_from['arch']})"
    return ", ".join(str(part["file"]) for part in made_from) if isinstance(made_from, list) else "-"
