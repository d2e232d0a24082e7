#!/usr/bin/env python3
"""Memory that `owf prepare` and fairseq's data loading need, and how it grows with the corpus.

Writes a random corpus, prepares it in shards with several processes, and loads the first shard as fairseq-train does,
down to its batches; then the same with four times as many pairs. Prints the peak of each step: resident memory of all
processes together (a page that several of them share is counted for each of them), and in brackets what of it is their
own, that is, without files that are mapped into memory, which the system drops when it needs the space. The last column
goes on along the line through both measurements, to the corpus of --pairs in --in-shards shards. Below 400,000 pairs
not all --workers are busy, and the line says nothing. Linux only.

example:
  python scripts/measure/prepare_memory.py --lines 2000000
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from owf_fairseq.scoring.quiet import quietly
from owf_fairseq.tables import markdown_table

WORDS = 200_000
BATCH = 3584
LANGS = ("en", "de")
LOADING = ("fairseq: loading a shard", "fairseq: one epoch of it", "fairseq: loading the next shard")
PER_SHARD = ("making shards", *LOADING)
"""Steps whose memory grows with the pairs of a shard, not of the corpus."""
OWF = "import sys; sys.argv[0] = 'owf'; from owf_fairseq.cli import main; sys.exit(main())"


@dataclass
class Peak:
    """Bytes: resident, and the part that is no mapped file."""

    resident: int = 0
    own: int = 0

    def see(self, resident: int, own: int) -> None:
        self.resident, self.own = max(self.resident, resident), max(self.own, own)


def write_corpus(folder: Path, pairs: int) -> int:
    """Random words, the frequent ones much more frequent; returns the characters of a pair, on average."""
    draw = np.random.default_rng(1)
    syllables = [c + v + e for c in "bdfgklmnprst" for v in "aeiou" for e in ("", "n", "r", "s")]
    spell = random.Random(1)
    words = ["".join(spell.choices(syllables, k=spell.randint(1, 5))) for _ in range(WORDS)]
    characters = 0
    for split, count in (("train", pairs), ("valid", 1000)):
        for lang in LANGS:
            with open(folder / f"{split}.{lang}", "w", encoding="utf-8") as file:
                for start in range(0, count, 100_000):
                    ends = np.cumsum(draw.integers(4, 40, size=min(100_000, count - start)))
                    drawn = [words[n] for n in np.minimum(draw.zipf(1.3, size=ends[-1]), WORDS) - 1]
                    begin = 0
                    for end in ends.tolist():
                        written = file.write(" ".join(drawn[begin:end]) + "\n")
                        characters += written if split == "train" else 0
                        begin = end
    return round(characters / pairs)


def processes_of(root: int) -> list[int]:
    """A process and all that it started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # has just ended
            continue
    family = [root]
    for process in family:
        family += [child for child, parent in parents.items() if parent == process]
    return family


def memory_of(process: int) -> tuple[int, int]:
    """Bytes that a process holds, resident and its own."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0, 0
    kilobytes = dict(re.findall(r"^(\w+):\s+(\d+) kB", status, re.MULTILINE))
    return int(kilobytes.get("VmRSS", 0)) * 1024, int(kilobytes.get("RssAnon", 0)) * 1024


def watch(root: int, alive: Callable[[], bool], step: Callable[[], str], peaks: dict[str, Peak]) -> None:
    """Looks at a process and its children ten times a second until it ends."""
    while alive():
        now = step()
        found = [memory_of(process) for process in processes_of(root)]
        peaks.setdefault(now, Peak()).see(sum(resident for resident, _ in found), sum(own for _, own in found))
        time.sleep(0.1)


def step_of(output: Path) -> str:
    """What `owf prepare` does now, from what is in its working folder."""
    work = output.parent / f".{output.name}.partial"
    seen = [
        (output, "making shards"),
        (work / "shards", "making shards"),
        (work / "dict.txt", "writing binary data"),
        (work / "segmentation", "cutting into pieces"),
        (work / "journal.jsonl", "checking the text"),
    ]
    if any(work.glob(".segmentation.*")):
        return "learning the segmentation"
    return next((step for path, step in seen if path.exists()), "counting lines")


def prepare(folder: Path, args: argparse.Namespace, peaks: dict[str, Peak]) -> str:
    """Runs `owf prepare`; returns what fairseq-train takes as data."""
    flags = ["--train", folder / "train", "--valid", folder / "valid", "--langs", "-".join(LANGS)]
    flags += ["--vocab-size", args.vocab_size, "--sample", args.sample]
    flags += ["--shards", args.shards, "--workers", args.workers, "--output", folder / "data"]
    command = [sys.executable, "-c", OWF, "prepare", *map(str, flags)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watch(process.pid, lambda: process.poll() is None, lambda: step_of(folder / "data"), peaks)
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        sys.exit(f"owf prepare failed (status {process.returncode})")
    return printed.splitlines()[-1] if args.shards > 1 else str(folder / "data")


def load(data: str, done: Path) -> None:
    """Does what fairseq-train does with the data: all batches of one epoch, and what is before the first of the next.

    Args:
        data: the shards.
        done: a folder that tells how far it is.
    """
    with quietly():
        _load(data, done)


def _load(data: str, done: Path) -> None:
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    argv = [data, "--task", "translation", "--source-lang", LANGS[0], "--target-lang", LANGS[1]]
    argv += ["--arch", "transformer", "--max-tokens", str(BATCH), "--num-workers", "0"]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), argv))
    task = tasks.setup_task(cfg.task)
    for epoch in (1, 2):
        task.load_dataset("train", epoch=epoch)
        # fairseq-train lets go of a shard when it has the next
        batches = task.get_batch_iterator(
            task.dataset("train"),
            max_tokens=BATCH,
            max_positions=(1024, 1024),
            ignore_invalid_inputs=True,
            seed=1,
            epoch=epoch,
            disable_iterator_cache=True,
        ).next_epoch_itr(shuffle=True)
        (done / f"{epoch}").mkdir(parents=True)
        if epoch == 1:
            for _ in batches:
                pass
            (done / "all").mkdir()


def measure(pairs: int, args: argparse.Namespace) -> tuple[dict[str, Peak], int]:
    """The peaks of all steps, and the characters of a pair."""
    peaks: dict[str, Peak] = {}
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        characters = write_corpus(folder, pairs)
        data = prepare(folder, args, peaks)
        done = folder / "done"
        process = multiprocessing.get_context("spawn").Process(target=load, args=(data, done))
        process.start()
        watch(process.pid or 0, process.is_alive, lambda: LOADING[len(list(done.glob("[1a]*")))], peaks)
        if process.exitcode:
            sys.exit("fairseq could not load the data")
    return peaks, characters


def rows(small: dict[str, Peak], large: dict[str, Peak], args: argparse.Namespace) -> Iterator[list[str]]:
    """A row of the table for each step."""
    for step, peak in large.items():
        before = small.get(step, peak)
        grown = (peak.own - before.own) / (args.lines - args.lines // 4)
        pairs = args.pairs * args.shards / args.in_shards if step in PER_SHARD else args.pairs
        far = peak.own + max(grown, 0) * (pairs - args.lines)
        cells = [f"{p.resident / 1e6:,.0f} ({p.own / 1e6:,.0f})" for p in (before, peak)]
        per = f"{grown * (args.shards if step in PER_SHARD else 1):.1f}"
        yield [step, *cells, per, f"{far / 1e9:.1f}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--lines", type=int, default=2_000_000, help="pairs of the larger corpus (default: %(default)s)"
    )
    parser.add_argument("--shards", type=int, default=4, help="(default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes of owf prepare (default: %(default)s)")
    parser.add_argument("--vocab-size", type=int, default=32000, help="(default: %(default)s)")
    parser.add_argument(
        "--sample", type=int, default=100_000, help="pairs to learn the segmentation from (default: %(default)s)"
    )
    parser.add_argument("--pairs", type=int, default=296_000_000, help="of the last column (default: %(default)s)")
    parser.add_argument("--in-shards", type=int, default=10, help="of the last column (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where there is room for the corpora (default: the system's)")
    args = parser.parse_args()
    if not Path("/proc/self/status").exists():
        parser.error("memory is read from /proc, which this system doesn't have")
    if args.lines < 4 * args.shards:
        parser.error(f"--lines must be at least four a shard, {4 * args.shards}")

    small, _ = measure(args.lines // 4, args)
    large, characters = measure(args.lines, args)
    header = ["step", f"{args.lines // 4:,} pairs: MB", f"{args.lines:,} pairs: MB", "bytes a pair"]
    header.append(f"{args.pairs / 1e6:,.0f} M pairs in {args.in_shards} shards: GB")
    print(markdown_table(header, list(rows(small, large, args))))
    sample = min(args.sample, args.lines) * characters
    print(f"\nThe segmentation was learnt from {sample / 1e6:.0f} million characters.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
