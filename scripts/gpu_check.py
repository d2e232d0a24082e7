#!/usr/bin/env python3
"""What only a GPU can show, in at most 9 minutes: half-precision training, decoding, and the batch sweep.

Trains with fairseq-train on generated sentences (targets are copies of their sources), in batches of as many tokens as
the configs of the paper's tables have, and measures decoding with `owf benchmark`, in half precision (the paper does
not say its own). Every part is a process with a time budget. A part that fails is a failed row of the table that is
printed last; the others run nevertheless, and the exit status is 1. Without a GPU the same parts run with small models,
in single precision, to show that they work.

In the output folder: table.md, results.json, a log for each part, and the JSON of both benchmarks.

example:
  python scripts/gpu_check.py
  python scripts/gpu_check.py --only data train-tiny decoding --output runs/again
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from training_log import ENDS, Training, read_training, telling_line

from owf_fairseq import USER_DIR
from owf_fairseq.doctor.installation import machine_facts
from owf_fairseq.files.lines import write_lines
from owf_fairseq.sharing import arch_name
from owf_fairseq.speed.report import spread_cell
from owf_fairseq.tables import Report, number


@dataclass(frozen=True)
class Plan:
    """All that differs with a GPU and without one.

    Attributes:
        size, decoder_only: of the models, beside owf_tiny.
        updates, max_tokens: of training; tokens of an update, at most.
        vocab_size, sentences: of the generated data; special symbols included.
        training, decoding, sweep: more flags of fairseq-train, and of `owf benchmark` in both parts.
        budgets: seconds of each part, by its name; then it is stopped.
    """

    size: str
    decoder_only: str
    updates: int
    max_tokens: int
    vocab_size: int
    sentences: int
    training: str
    decoding: str
    sweep: str
    budgets: Mapping[str, float]


# With the start and the question for the device (30 s) these are 9 minutes at most.
BUDGETS = {"data": 40, "train-tiny": 35, "train-vanilla": 65, "train-one-wide": 70, "train-decoder-only": 70}
BUDGETS |= {"decoding": 135, "sweep": 80}
WITH_GPU = Plan(
    size="big",
    decoder_only="decoder_only",
    updates=200,
    max_tokens=3584,  # as configs/_paper.yaml: what the peak of memory is the peak of
    vocab_size=32_000,
    sentences=20_000,
    training="--fp16 --warmup-updates 100",
    decoding="--fp16",
    sweep="--fp16 --batch-sizes 1,8,32,128,512 --runs 3",
    budgets=BUDGETS,
)
WITHOUT_GPU = Plan(
    size="small",
    decoder_only="decoder_only_small",
    updates=30,
    max_tokens=300,
    vocab_size=400,
    sentences=400,
    training="--cpu --warmup-updates 10",
    decoding="--cpu --vocab-size 400 --sentences 2 --runs 2 --lengths 6/7",
    sweep="--cpu --vocab-size 400 --sentences 1 --batch-sizes 1,8 --runs 2 --lengths 6/7",
    budgets=dict.fromkeys(BUDGETS, 120),
)

# As users train: --fp16 alone, with fairseq's own loss scaling. Every update is logged, so that no peak is missed.
TRAINING = "--task translation --share-all-embeddings --dropout 0.1 --optimizer adam --adam-betas (0.9,0.98)".split()
TRAINING += "--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --clip-norm 1.0 --seed 1".split()
TRAINING += "--lr 5e-4 --lr-scheduler inverse_sqrt --required-batch-size-multiple 1 --num-workers 0 --no-save".split()
TRAINING += "--disable-validation --log-format json --log-interval 1 --distributed-world-size 1".split()
OWF = [sys.executable, "-c", "import sys; from owf_fairseq.cli import main; sys.exit(main())"]
NO_GPU = "No GPU: small models in single precision show that everything runs; `owf doctor` may say why there is none."
PRECISIONS = ("single", "half")
PROBE_SECONDS = 30
# The arithmetic finds a driver, or a build of torch, that doesn't fit the GPU.
PROBE = """
import torch
if torch.cuda.is_available():
    torch.ones(8, 8, device="cuda").half().matmul(torch.ones(8, 8, device="cuda").half()).sum().item()
    print(torch.cuda.get_device_name())
"""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        part, model: what was done, with what.
        training: what was logged of one.
        decoding: what `owf benchmark` measured, see its JSON.
        failure: None if all is as it should be.
    """

    part: str
    model: str
    training: Training | None = None
    decoding: Mapping[str, Any] | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Part:
    """A process and what it shows.

    Attributes:
        name: of the part and its log.
        model: that it is about, ``-`` for several.
        command: of the process.
        seconds: its budget.
        read: makes rows of what it has printed or written, after it has ended well; ValueError says what is missing.
    """

    name: str
    model: str
    command: Sequence[str]
    seconds: float
    read: Callable[[str], list[Row]]


def write_text(folder: Path, plan: Plan) -> None:
    """Sentences of 10 to 40 words, the first of which are frequent, as in language (Zipf); and their dictionary."""
    generator = random.Random(1)
    words = [f"w{rank}" for rank in range(plan.vocab_size - 4)]  # fairseq adds four symbols
    shares = [1 / (rank + 1) for rank in range(len(words))]
    lengths = [generator.randint(10, 40) for _ in range(plan.sentences)]
    drawn = iter(generator.choices(words, shares, k=sum(lengths)))
    lines = [" ".join(next(drawn) for _ in range(length)) for length in lengths]
    for side in ("src", "tgt"):
        write_lines(folder / f"train.{side}", lines)
        write_lines(folder / f"valid.{side}", lines[:8])  # fairseq 0.12.2 loads it with --disable-validation too
    write_lines(folder / "dict.txt", [f"{word} 1" for word in words])


def parts(plan: Plan, scratch: Path, output: Path) -> list[Part]:
    """All parts in their order.

    Args:
        plan: what is run.
        scratch: has the text of ``write_text``; for the binary data, and what fairseq leaves when a training breaks.
        output: the folder of the results.
    """
    binarize = [sys.executable, "-m", "fairseq_cli.preprocess", "-s", "src", "-t", "tgt", "--joined-dictionary"]
    binarize += ["--trainpref", str(scratch / "train"), "--validpref", str(scratch / "valid"), "--workers", "1"]
    binarize += ["--srcdict", str(scratch / "dict.txt"), "--destdir", str(scratch / "data-bin")]
    found = [Part("data", "-", binarize, plan.budgets["data"], lambda log: [])]

    vanilla, wide, no_dec = (arch_name(plan.size, name) for name in ("individual", "one_wide_ffn", "no_dec"))
    decoder_only = arch_name(plan.decoder_only, "individual")
    train = [sys.executable, "-m", "fairseq_cli.train", str(scratch / "data-bin"), "--user-dir", USER_DIR, *TRAINING]
    train += ["--max-tokens", str(plan.max_tokens), "--max-update", str(plan.updates), "--save-dir", str(scratch)]
    train += plan.training.split()
    trained = {"train-tiny": "owf_tiny", "train-vanilla": vanilla, "train-one-wide": wide}
    for name, arch in {**trained, "train-decoder-only": decoder_only}.items():
        read = partial(training_row, part=name, arch=arch, plan=plan)
        found.append(Part(name, arch, [*train, "--arch", arch], plan.budgets[name], read))

    both = (("decoding", [vanilla, no_dec, wide, decoder_only], plan.decoding), ("sweep", [vanilla, wide], plan.sweep))
    for name, archs, flags in both:
        result = output / f"{name}.json"
        command = [*OWF, "benchmark", *archs, *flags.split(), "--json", str(result), "--overwrite"]
        found.append(Part(name, "-", command, plan.budgets[name], partial(benchmark_rows, part=name, path=result)))
    return found


def run_part(part: Part, log: Path) -> list[Row]:
    """Runs a part, whose output goes to the file ``log``, until its budget is used up."""
    with log.open("wb") as file:
        try:
            done = subprocess.run(
                part.command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, timeout=part.seconds
            )
            problem = f"exit status {done.returncode}" if done.returncode else None
        except subprocess.TimeoutExpired:
            problem = f"stopped after its {part.seconds:.0f} s"
    text = log.read_text(encoding="utf-8", errors="replace")
    if problem is None:
        try:
            return part.read(text)
        except (ValueError, LookupError, OSError) as error:
            problem = f"its results can't be read: {error!r}"
    return [Row(part.name, part.model, failure=f"{problem}; {log}: {telling_line(text)}")]


def training_row(log: str, part: str, arch: str, plan: Plan) -> list[Row]:
    """The row of a training, from what fairseq-train printed."""
    training = read_training(log)
    problems = training.problems()
    if training.logged != plan.updates:
        problems.append(f"{training.logged} updates were logged, not {plan.updates}")
    if "--fp16" in plan.training and training.loss_scale is None:
        problems.append("no loss scale was logged: it did not train in half precision")
    return [Row(part, arch, training, failure="; ".join(problems) or None)]


def benchmark_rows(log: str, part: str, path: Path) -> list[Row]:
    """The rows of a benchmark, from its JSON."""
    return [
        Row(f"{part}, batch {entry['batch_size']}", entry["name"], decoding=entry, failure=entry["failure"])
        for entry in json.loads(path.read_text(encoding="utf-8"))["measurements"]
    ]


def find_device() -> str:
    """The GPU's name, or ``CPU``; asked in another process, for a GPU may be for one at a time.

    Raises:
        SystemExit: there is a GPU that torch can't use.
    """
    try:
        command = [sys.executable, "-c", PROBE]
        asked = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PROBE_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        sys.exit(f"gpu_check: torch can't use the GPU that it finds (`owf doctor` may say why): {error}")
    return asked.stdout.strip() or "CPU"


def report(rows: Sequence[Row], device: str, plan: Plan, seconds: float) -> Report:
    """The table of all rows, with what failed under it."""
    header = ("part", "model", "tokens/s", "speed-up", "peak, GB", "loss", "loss scale", "result")
    cells = []
    for row in rows:
        shown = ["-"] * 5
        if row.training is not None:
            loss, scale = change(row.training.loss, ".2f"), change(row.training.loss_scale, "g")
            shown = [number(row.training.tokens_per_s, 1), "-", number(row.training.peak_gb, 1), loss, scale]
        elif row.decoding is not None and row.failure is None:
            shown[:2] = spread_cell(row.decoding["tokens_per_s"], 1), number(row.decoding["ratio"]["median"], 2)
        cells.append([row.part, row.model, *shown, "FAILED" if row.failure else "ok"])
    facts = machine_facts(device)
    versions = "; ".join(f"{name} {version}" for name, version in facts["versions"].items())
    notes = [f"{device}; {versions}; {seconds:.0f} s."]
    notes += [NO_GPU] if device == "CPU" else []
    notes.append(
        f"Training: {plan.updates} updates of at most {plan.max_tokens:,} tokens; tokens/s: median of the second half; "
        f"peak: the most that tensors held in an update; loss: first {ENDS} updates → last {ENDS}. Decoding: "
        f"{PRECISIONS['--fp16' in plan.decoding]} precision, see `owf benchmark`; speed-up: over the vanilla model."
    )
    notes += [f"FAILED: {row.part}, {row.model}: {row.failure}" for row in rows if row.failure]
    data = {**facts, "plan": asdict(plan), "seconds": seconds, "rows": [asdict(row) for row in rows]}
    return Report(header, cells, data, notes, words=(0, 1, 7))


def change(values: tuple[float, float] | None, form: str) -> str:
    """``14.90 → 10.50`` as a cell."""
    return "-" if values is None else f"{values[0]:{form}} → {values[1]:{form}}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the parts; returns 1 if one failed."""
    begun = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="folder of the results (default: runs/gpu-check in the checkout)")
    which = f"run these parts only: {', '.join(BUDGETS)}; trainings need data"
    parser.add_argument("--only", nargs="+", choices=BUDGETS, metavar="PART", help=which)
    args = parser.parse_args(argv)
    output = args.output or Path(__file__).resolve().parent.parent / "runs" / "gpu-check"
    device = find_device()
    plan = WITHOUT_GPU if device == "CPU" else WITH_GPU
    output.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        write_text(Path(folder), plan)
        for part in [part for part in parts(plan, Path(folder), output) if part.name in (args.only or BUDGETS)]:
            print(f"== {part.name} ({device}, at most {part.seconds:.0f} s)", flush=True)
            found = run_part(part, output / f"{part.name}.log")
            rows += found
            for row in found:
                print(f"{row.part}, {row.model}: {row.failure or 'ok'}", flush=True)
            # after every part, for whoever is stopped from outside
            table = report(rows, device, plan, time.monotonic() - begun)
            write_lines(output / "table.md", table.as_markdown().split("\n"))
            write_lines(output / "results.json", table.as_json().split("\n"))
    print(f"\n{table.as_text()}", flush=True)
    return int(any(row.failure for row in rows))


if __name__ == "__main__":
    sys.exit(main())
