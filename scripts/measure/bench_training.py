#!/usr/bin/env python3
"""Training speed and memory of several architectures, alternating in one run, as ratios.

Each architecture trains in a process of its own, on the same generated sentences with the same seed, through fairseq's
own Trainer. The processes take turns, a few updates each, so that whatever else the machine does meets all of them.
Each is compared with the one named before it: the median over the rounds of the two speeds' ratio.

Not timed: reading data, validation, saving, and the updates of the warm-up. Memory is the peak above what the process
held before it built the model: of the GPU's allocator, or the resident set on a CPU.

example:
  python scripts/measure/bench_training.py            # fairseq's own, ours, One Wide; size small, CPU
  python scripts/measure/bench_training.py --size base --rounds 5 --json base.json
  python scripts/measure/bench_training.py --size big --device cuda --fp16 --max-tokens 4096
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import random
import resource
import statistics
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tqdm import tqdm

from owf_fairseq.files.outputs import check_output_file, write_output
from owf_fairseq.sharing import SIZES, arch_name

# seen by every contestant; fairseq's own `transformer` gets the numbers of the size by flags
KIND = "training"
"""What the JSON says that it is."""

TRAINING = "--task translation --optimizer adam --adam-betas (0.9,0.98) --lr 0.0005 --clip-norm 1.0".split()
TRAINING += "--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --share-all-embeddings --seed 1".split()
TRAINING += "--required-batch-size-multiple 1 --num-workers 0 --no-progress-bar".split()


@dataclass
class Contestant:
    """One architecture's measurements.

    Attributes:
        arch: its name. seconds: of each round. tokens: target tokens a round. peak_bytes: memory, see above.
        loss: of the last update, in bits a token; contestants that are equal print the same.
    """

    arch: str
    tokens: int = 0
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    loss: float = 0.0

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / statistics.median(self.seconds)


def quiet() -> None:
    """fairseq and hydra log and warn much while they start, and none of it is about us."""
    logging.disable(logging.INFO)
    warnings.filterwarnings("ignore")


def model_flags(arch: str, size: str) -> list[str]:
    """Flags that give fairseq's own ``transformer`` the numbers of a size; none for ours."""
    if arch != "transformer":
        return []
    numbers = SIZES[size]
    flags = []
    for stack, layers in (("encoder", numbers.encoder_layers), ("decoder", numbers.decoder_layers)):
        flags += [f"--{stack}-layers", layers, f"--{stack}-embed-dim", numbers.embed_dim]
        flags += [f"--{stack}-ffn-embed-dim", numbers.ffn_dim, f"--{stack}-attention-heads", numbers.heads]
    return [str(flag) for flag in flags]


def write_data(folder: Path, sentences: int, vocabulary: int, length: int) -> Path:
    """Random sentences of around ``length`` words, as fairseq's binary data; returns its folder."""
    quiet()
    from fairseq_cli import preprocess

    generator = random.Random(1)
    words = [f"w{number}" for number in range(vocabulary)]
    every_word_once = [" ".join(words[start : start + length]) for start in range(0, vocabulary, length)]
    for side in ("src", "tgt"):
        lengths = [generator.randint(length // 2, length * 3 // 2) for _ in range(sentences)]
        lines = [" ".join(generator.choices(words, k=k)) for k in lengths]
        (folder / f"train.{side}").write_text("\n".join(every_word_once + lines) + "\n")
    argv = ["-s", "src", "-t", "tgt", "--trainpref", str(folder / "train"), "--joined-dictionary"]
    argv += ["--destdir", str(folder / "data-bin"), "--workers", "1"]
    preprocess.main(preprocess.options.get_preprocessing_parser().parse_args(argv))
    return folder / "data-bin"


def contest(connection: Connection, data: Path, contestant: Contestant, args: argparse.Namespace) -> None:
    """A contestant's process: trains as many updates as it is told to, and answers with the time that they took."""
    quiet()
    import torch
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.trainer import Trainer

    from owf_fairseq import USER_DIR
    from owf_fairseq import models as _models  # noqa: F401  registers the archs

    argv = [str(data), "--user-dir", USER_DIR, "--arch", contestant.arch, *model_flags(contestant.arch, args.size)]
    argv += [*TRAINING, "--max-tokens", str(args.max_tokens)]
    argv += ["--cpu"] if args.device == "cpu" else []
    argv += ["--fp16"] if args.fp16 else []
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), argv))
    torch.manual_seed(cfg.common.seed)
    torch.set_num_threads(args.threads)
    task = tasks.setup_task(cfg.task)
    task.load_dataset("train")
    batches = task.get_batch_iterator(task.dataset("train"), max_tokens=args.max_tokens, seed=1).next_epoch_itr()
    samples = [sample for sample, _ in zip(batches, range(args.updates), strict=False)]
    before = resident()
    model = task.build_model(cfg.model)
    trainer = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    trainer.begin_epoch(1)
    while connection.recv():
        start, loss = time.perf_counter(), 0.0
        for sample in samples:
            logged = trainer.train_step([sample])
            loss = logged["loss"] if logged else loss
        if args.device == "cuda":
            torch.cuda.synchronize()
        tokens = sum(sample["ntokens"] for sample in samples)
        connection.send((time.perf_counter() - start, tokens, float(loss)))
    peak = torch.cuda.max_memory_allocated() if args.device == "cuda" else resident(peak=True) - before
    connection.send(peak)


def resident(peak: bool = False) -> int:
    """Bytes of memory that this process holds, or held at most."""
    if peak:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else resident(peak=True)


def run(args: argparse.Namespace) -> list[Contestant]:
    """Lets the contestants train in turn; returns their measurements in the order of ``args.archs``."""
    contestants = [Contestant(arch) for arch in args.archs]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        data = write_data(Path(folder), args.updates * args.max_tokens // args.length * 2, args.vocab_size, args.length)
        pipes, processes = [], []
        for contestant in contestants:
            here, there = context.Pipe()
            process = context.Process(target=contest, args=(there, data, contestant, args), daemon=True)
            process.start()
            there.close()  # so that a contestant that dies ends our waiting
            pipes.append(here)
            processes.append(process)
        turns = list(zip(contestants, pipes, strict=True))
        for number in tqdm(range(args.warmup + args.rounds), desc="rounds", disable=None):
            for contestant, pipe in turns if number % 2 == 0 else turns[::-1]:
                pipe.send(True)
                seconds, contestant.tokens, contestant.loss = pipe.recv()
                if number >= args.warmup:
                    contestant.seconds.append(seconds)
        for contestant, pipe in turns:
            pipe.send(False)
            contestant.peak_bytes = pipe.recv()
        for process in processes:
            process.join()
    return contestants


def compare(one: Contestant, other: Contestant) -> dict[str, float]:
    """``one`` in terms of ``other``: the ratios of speed (median over the rounds) and of peak memory."""
    ratios = [b / a for a, b in zip(one.seconds, other.seconds, strict=True)]
    return {"speed": statistics.median(ratios), "memory": one.peak_bytes / other.peak_bytes}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "archs", nargs="*", help="default: transformer (fairseq's own), owf_SIZE, owf_SIZE_one_wide_ffn"
    )
    parser.add_argument("--size", choices=[name for name in SIZES if SIZES[name].encoder_layers], default="small")
    parser.add_argument("--updates", type=int, default=10, help="updates a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="timed rounds (default: %(default)s)")
    parser.add_argument("--warmup", type=int, default=1, help="rounds before them (default: %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=2000, help="a batch's size (default: %(default)s)")
    parser.add_argument("--length", type=int, default=20, help="words a sentence, mean (default: %(default)s)")
    parser.add_argument("--vocab-size", type=int, default=4000, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of a CPU (default: %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--fp16", action="store_true", help="half precision, with --device cuda")
    parser.add_argument("--json", type=Path, help="write the measurements here too")
    args = parser.parse_args()
    if args.fp16 and args.device == "cpu":
        parser.error("--fp16 needs --device cuda: a CPU trains in single precision")
    for problem in check_output_file("--json", args.json, overwrite=False, kind=KIND):
        parser.error(problem)
    args.archs = args.archs or ["transformer", arch_name(args.size, "individual"), arch_name(args.size, "one_wide_ffn")]

    contestants = run(args)
    print(f"{'arch':40} {'tokens/s':>9} {'peak MB':>8} {'loss':>7}")
    for contestant in contestants:
        megabytes = contestant.peak_bytes / 1e6
        print(f"{contestant.arch:40} {contestant.tokens_per_s:9.0f} {megabytes:8.0f} {contestant.loss:7.3f}")
    comparisons = []
    for other, one in zip(contestants, contestants[1:], strict=False):
        ratios = compare(one, other)
        comparisons.append({"arch": one.arch, "to": other.arch, **ratios})
        print(f"{one.arch} / {other.arch}: speed {ratios['speed']:.3f}, memory {ratios['memory']:.3f}")
    if args.json:
        data = {"kind": KIND, "contestants": [asdict(c) for c in contestants], "ratios": comparisons}
        write_output("--json", args.json, json.dumps(data, indent=2).split("\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
