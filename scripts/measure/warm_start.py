#!/usr/bin/env python3
"""Does a trained vanilla model help a One Wide FFN to start? Validation loss against updates, beside from scratch.

example:
  python scripts/measure/warm_start.py --updates 2000 --interval 100
  python scripts/measure/warm_start.py --data DATA --checkpoint best.pt --output docs/warm_start --updates 500

`owf convert` makes the starting points, with each of its ways to combine FFNs; fairseq-train then trains them and a
model from scratch with the same flags, data and seed, and validates them at the same numbers of updates. Writes
warm_start.json, README.md and warm_start.png to the output folder. The trainings, in the folder of `--work`, are
resumed where they were interrupted. The plot needs matplotlib: pip install '.[plot]'
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from owf_fairseq import USER_DIR
from owf_fairseq.errors import InputError
from owf_fairseq.files.job import changed_settings
from owf_fairseq.files.lines import atomic_path, write_lines
from owf_fairseq.tables import markdown_table

SCRATCH = "from scratch"


@dataclass
class Curve:
    """One training's validation.

    Attributes:
        name: ``from scratch`` or ``warm start, INIT``.
        loss: nll_loss in bits a token, by the number of updates.
    """

    name: str
    loss: dict[int, float] = field(default_factory=dict)


def main() -> int:
    """Parses the flags, measures, and writes the report.

    Returns:
        The exit status.
    """
    args = parse_args()
    for chatty in ("fairseq.tasks.text_to_speech", "matplotlib"):  # the one advertises, the other tells of every font
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        check_output(args.output)
        curves, facts = measure(args)
        write_report(args.output, curves, facts, plotted=not args.no_plot)
    except InputError as error:
        for problem in error.problems:
            print(f"warm_start.py: error: {problem}", file=sys.stderr)
        return 2
    print((args.output / "README.md").read_text(encoding="utf-8"))
    return 0


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    run = Path("runs/quickstart-en-de")
    parser.add_argument("--data", type=Path, default=run / "data", help="binary data (default: %(default)s)")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=run / "owf_small/checkpoint_best.pt",
        help="the trained vanilla model (default: %(default)s)",
    )
    parser.add_argument("--to", metavar="ARCH", help="the arch to train (default: the One Wide FFN of the same size)")
    parser.add_argument("--init", nargs="+", default=["mean", "concat"], choices=["mean", "concat"])
    parser.add_argument("--updates", type=int, default=2000, metavar="N", help="of each training (default: 2000)")
    parser.add_argument("--interval", type=int, default=100, metavar="N", help="updates between validations")
    parser.add_argument("--lr", type=float, default=2e-3, help="peak learning rate (default: 0.002)")
    parser.add_argument("--warmup", type=int, default=200, metavar="N", help="updates until the peak (default: 200)")
    parser.add_argument("--max-tokens", type=int, default=500, metavar="N", help="of a batch (default: 500)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpu", action="store_true", help="train on a GPU (default: on the CPU, with one thread)")
    parser.add_argument("--work", type=Path, default=Path("runs/warm-start"), help="trainings (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("docs/warm_start"), help="report (default: %(default)s)")
    parser.add_argument("--no-plot", action="store_true", help="write no plot")
    args = parser.parse_args()
    if min(args.updates, args.interval, args.warmup) < 1 or args.updates % args.interval:
        parser.error("--updates must be a multiple of --interval, and --warmup at least 1")
    if not args.no_plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("the plot needs matplotlib: pip install '.[plot]', or give --no-plot")
    return args


def measure(args: argparse.Namespace) -> tuple[list[Curve], dict[str, Any]]:
    """Converts, trains and validates.

    Returns:
        The curves, and what else the report says.

    Raises:
        InputError: the checkpoint cannot be read or converted, or the folder holds trainings with other settings.
    """
    from owf_fairseq.checkpoints.checkpoint import write_checkpoint
    from owf_fairseq.checkpoints.convert import COMMAND, convert
    from owf_fairseq.checkpoints.stored_model import read_model, updates_of
    from owf_fairseq.sharing import ARCHS, arch_name

    source = read_model(args.checkpoint)
    arch = args.to
    if arch is None:
        if not source.is_ours:
            raise InputError(f"{args.checkpoint} is of the arch '{source.arch}', whose size has no name: give `--to`")
        arch = arch_name(ARCHS[source.arch][0], "one_wide_ffn")
    settings = {
        "checkpoint": str(args.checkpoint),
        "checkpoint_bytes": args.checkpoint.stat().st_size,
        "checkpoint_updates": updates_of(source.state),
        "checkpoint_sha256": hashlib.sha256(args.checkpoint.read_bytes()).hexdigest(),  # of another seed, say
        "data": str(args.data),
        "arch": arch,
        **{name: getattr(args, name) for name in ("updates", "interval", "lr", "warmup", "max_tokens", "seed")},
    }
    same_settings(args.work / "settings.json", settings)
    starts: dict[str, Path | None] = {SCRATCH: None}
    flags: list[str] = []
    for init in args.init:
        converted = convert(source, arch, init=init)
        flags = [word for flag in converted.flags for word in flag.split()]
        starts[f"warm start, {init}"] = args.work / f"{init}.pt"
        write_checkpoint(converted.state, args.work / f"{init}.pt", COMMAND)
    # what the conversion does not speak of, such as dropout, is the source's for all
    curves = [train(name, start, arch, flags, args) for name, start in starts.items()]
    facts = {
        **settings,
        "vanilla": {"arch": source.arch, "updates": settings["checkpoint_updates"]},
        "vanilla_loss": validate(args.checkpoint, args),
        "flags": flags,
    }
    return curves, facts


def same_settings(path: Path, settings: dict[str, Any]) -> None:
    """Refuses to go on with trainings of other flags or another checkpoint; notes them if none has begun."""
    if path.exists():
        noted = json.loads(path.read_text(encoding="utf-8"))
        differing = [
            f"{name} {noted.get(name)}, not {settings.get(name)}" for name in changed_settings(noted, settings)
        ]
        if differing:
            raise InputError(f"{path.parent} holds trainings with {'; '.join(differing)}: give another `--work`")
    write_lines(path, json.dumps(settings, indent=2).split("\n"))


def train(name: str, start: Path | None, arch: str, flags: list[str], args: argparse.Namespace) -> Curve:
    """Trains one model, or goes on with its training; prints its validations as they come."""
    folder = args.work / name.replace(", ", "-").replace(" ", "-")
    log = folder / "train.log"
    folder.mkdir(parents=True, exist_ok=True)
    curve = Curve(name)
    if log.exists():
        curve.loss = losses(log.read_text(encoding="utf-8", errors="replace"))
    if start is not None and 0 not in curve.loss:
        curve.loss[0] = validate(start, args)
    if args.updates in curve.loss:
        print(f"{name}: trained before", flush=True)
        return curve
    command = program("train", args.data, "--user-dir", USER_DIR, "--arch", arch, *flags)
    command += "--task translation --criterion label_smoothed_cross_entropy --label-smoothing 0.1".split()
    command += ["--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", "1.0", "--lr", str(args.lr)]
    command += ["--lr-scheduler", "polynomial_decay", "--warmup-updates", str(args.warmup), "--seed", str(args.seed)]
    command += ["--total-num-update", str(args.updates), "--max-update", str(args.updates)]
    command += ["--max-tokens", str(args.max_tokens), "--required-batch-size-multiple", "1", "--num-workers", "0"]
    command += ["--validate-interval-updates", str(args.interval), "--save-interval-updates", str(args.interval)]
    command += "--keep-interval-updates 1 --no-epoch-checkpoints --log-format json --no-progress-bar".split()
    command += "--validate-interval 1000000 --save-interval 1000000".split()
    command += ["--save-dir", str(folder)] + ([] if args.gpu else ["--cpu"])
    command += ["--finetune-from-model", str(start)] if start is not None else []
    with open(log, "a", encoding="utf-8") as file, running(command) as process:
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            file.flush()
            for updates, loss in losses(line).items():
                curve.loss[updates] = loss
                print(f"{name}: {updates} of {args.updates} updates, {loss:.3f} bits a token", flush=True)
    if process.returncode != 0 or args.updates not in curve.loss:
        raise InputError(f"fairseq-train failed: the end of {log} says why")
    return curve


def losses(log: str) -> dict[int, float]:
    """The validations in a log of fairseq-train: nll_loss in bits a token, by the number of updates."""
    found = {}
    for text in re.findall(r'\{"epoch".*"valid_num_updates".*\}', log):
        values = json.loads(text)
        found[int(values["valid_num_updates"])] = float(values["valid_nll_loss"])
    return found


def validate(checkpoint: Path, args: argparse.Namespace) -> float:
    """A checkpoint's nll_loss on the validation set, in bits a token."""
    command = program("validate", args.data, "--task", "translation", "--path", checkpoint, "--user-dir", USER_DIR)
    command += ["--max-tokens", str(args.max_tokens), "--required-batch-size-multiple", "1", "--num-workers", "0"]
    command += ["--log-format", "json"]
    command += [] if args.gpu else ["--cpu"]
    with running(command) as process:
        output = process.communicate()[0]
    found = re.findall(r'"valid_nll_loss": "([\d.]+)"', output)
    if process.returncode != 0 or not found:
        raise InputError(f"fairseq-validate failed on {checkpoint}:\n{output[-1000:]}")
    return float(found[-1])


def program(name: str, *arguments: str | Path) -> list[str]:
    """The command line of one of fairseq's programs of this installation."""
    return [str(Path(sys.executable).with_name(f"fairseq-{name}")), *map(str, arguments)]


def running(command: list[str]) -> subprocess.Popen[str]:
    """The command, started, with one thread for each matrix product and its errors in its output."""
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def check_output(folder: Path) -> None:
    """Refuses a folder whose page is not this script's.

    Raises:
        InputError: it would be replaced.
    """
    if (folder / "README.md").exists() and not (folder / "warm_start.json").exists():
        raise InputError(f"`--output` {folder} has a README.md that this script didn't make: name another folder")


def write_report(folder: Path, curves: list[Curve], facts: dict[str, Any], *, plotted: bool) -> None:
    """Writes the numbers, the page and the plot."""
    data = {**facts, "curves": [asdict(curve) for curve in curves]}
    write_lines(folder / "warm_start.json", json.dumps(data, indent=2).split("\n"))
    if plotted:
        plot(folder / "warm_start.png", curves, facts)
    write_lines(folder / "README.md", page(folder, curves, facts, plotted=plotted).split("\n"))


def page(folder: Path, curves: list[Curve], facts: dict[str, Any], *, plotted: bool) -> str:
    """The report in Markdown, its table marked as `scripts/render_tables.py` reads it."""
    vanilla = facts["vanilla"]
    settings = ("updates", "interval", "lr", "warmup", "max_tokens", "seed")
    flags = " ".join(f"--{name.replace('_', '-')} {facts[name]}" for name in settings)
    command = (
        f"python scripts/measure/warm_start.py --data {facts['data']} --checkpoint {facts['checkpoint']} "
        f"--output {folder} {flags}"
    )
    return "\n".join(
        [
            f"# Starting {facts['arch']} from a trained {vanilla['arch']}",
            "",
            "Validation loss, in bits per token, after the same numbers of updates. The "
            f"{vanilla['arch']} model that it starts from was trained for {vanilla['updates']:,} updates and has a "
            f"loss of {facts['vanilla_loss']:.3f}. All have the same data, flags and seed; the optimizer state starts "
            "afresh. Made by `scripts/measure/warm_start.py`; all points are in `warm_start.json`.",
            "",
            *(["![validation loss against updates](warm_start.png)", ""] if plotted else []),
            f"<!-- table: curves from {folder / 'warm_start.json'}, made by: {command} -->",
            loss_table(curves),
            "<!-- end table -->",
            "",
            f"`{flags}`",
        ]
    )


def loss_table(curves: list[Curve]) -> str:
    """The losses in Markdown, a row for each of about twelve numbers of updates. `scripts/render_tables.py` uses it."""
    updates = sorted({number for curve in curves for number in curve.loss})
    step = max(1, len(updates) // 12)
    shown = [number for index, number in enumerate(updates) if index % step == 0 or number == updates[-1]]
    rows = [[f"{n:,}", *(f"{c.loss[n]:.3f}" if n in c.loss else "-" for c in curves)] for n in shown]
    return markdown_table(["updates", *(curve.name for curve in curves)], rows, words=())


def plot(path: Path, curves: list[Curve], facts: dict[str, Any]) -> None:
    """Draws the curves."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for curve, marker in zip(curves, "osv", strict=False):
        points = sorted(curve.loss.items())
        axes.plot(*zip(*points, strict=True), label=curve.name, marker=marker, markersize=3)
    axes.axhline(facts["vanilla_loss"], linestyle="--", color="grey", label=f"the trained {facts['vanilla']['arch']}")
    axes.set_xlabel("updates")
    axes.set_ylabel("validation loss (bits a token)")
    axes.set_title(facts["arch"])
    axes.legend()
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
    pyplot.close(figure)


if __name__ == "__main__":
    raise SystemExit(main())
