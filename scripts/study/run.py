#!/usr/bin/env python3
"""One run of the study: trains a model, translates, scores, and leaves what the tables need in a folder of its own.

example:
  python scripts/study/run.py one_wide_ffn --seed 1 --data runs/study --work runs/study/models --results docs/study/runs

The folder NAME_seed_N of --results gets run.json and the translation of the test set, test.de; for models that share
the decoder's self-attention also test.one_cache.de, decoded with one cache for all layers. The folder is there when all
of it is, and a run whose folder is there is skipped. After an interruption the same command goes on. All is done on the
CPU, with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from _plan import KIND, RECIPE, RECORD, Plan, is_done, make_plan
from _runs import ROWS, SIZE, UPDATES, Row, Run, find_row

from owf_fairseq.errors import InputError

sys.path.extend(str(Path(__file__).resolve().parent.parent / folder) for folder in ("", "measure"))
from training_log import training_seconds, validations


def main(argv: list[str] | None = None) -> int:
    """Does a run.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(ROWS)}")
    parser.add_argument("--seed", type=int, required=True, metavar="N")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="with raw/ and data/, of Multi30k")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="for checkpoints and logs")
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="for the folders of results")
    parser.add_argument("--updates", type=int, default=UPDATES, metavar="N", help="default: %(default)s")
    parser.add_argument("--recipe", type=Path, default=RECIPE, metavar="FILE", help="a config (default: %(default)s)")
    parser.add_argument("--size", default=SIZE, help="of the architectures (default: %(default)s)")
    args = parser.parse_args(argv)
    os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    try:
        return do_run(Run(args.name, args.seed), args)
    except InputError as error:
        for problem in error.problems:
            print(f"run.py: error: {problem}", file=sys.stderr)
        return 2


def do_run(run: Run, args: argparse.Namespace) -> int:
    """Trains, translates, scores and writes, whatever of it is not there yet.

    Raises:
        InputError: what was given can't be used, or the results are of other settings.
    """
    row = find_row(run.name)
    if args.updates < 2:
        raise InputError(f"`--updates` must be at least 2, but is {args.updates}")
    plan = make_plan(row, args.updates, args.size, args.recipe)
    place = args.results / run.folder
    if is_done(place, plan):
        print(f"{run.folder}: its results are in {place}", flush=True)
        return 0
    files = [args.data / f"raw/{split}.{lang}" for split in ("test", "valid") for lang in ("en", "de")]
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise InputError(
            f"`--data` {args.data} must be a run's folder with raw/ and data/, but {missing[0]} is missing"
        )
    trained = train_all(run, plan, args)
    if not trained:
        return 1
    checkpoint = args.work / run.folder / "checkpoint_best.pt"
    texts = translate_all(row, checkpoint, args.data / "raw")
    record = {**describe(run, plan, checkpoint), **trained, **scores(texts, args.data / "raw")}
    write_results(place, record, {name: path for name, path in texts.items() if name.startswith("test")})
    print(f"{run.folder}: BLEU {record['test']['bleu']:.1f}; results are in {place}", flush=True)
    return 0


def train_all(run: Run, plan: Plan, args: argparse.Namespace) -> dict[str, Any]:
    """Trains the model, and the one that it starts from.

    Returns:
        What the record says of it; nothing if a training failed.
    """
    from owf_fairseq import cli
    from owf_fairseq.training.record import read_training_record
    from owf_fairseq.training.several import LOG

    seconds = done = 0
    words: list[str] = []
    if plan.first is not None:
        folder = train(f"{run.name}_start", plan.first, run.seed, args)
        start = args.work / f"{run.folder}_start.pt"
        flags = [f"--{flag}={value}" for flag, value in plan.model.items() if flag != "arch"]
        if folder is None:
            return {}
        convert = ["convert", folder / "checkpoint_last.pt", "--to", plan.model["arch"], "--init", "concat", *flags]
        if not start.exists() and cli.main([*map(str, convert), "--output", str(start)]):
            return {}
        words = ["--finetune-from-model", str(start)]
        seconds, done = training_seconds((folder / LOG).read_text(encoding="utf-8")), int(plan.first["max-update"])
    folder = train(run.name, plan.second, run.seed, args, words)
    if folder is None:
        return {}
    log, kept = (folder / LOG).read_text(encoding="utf-8"), read_training_record(folder) or {}
    curve = [
        {"updates": done + updates, "loss": loss, "nll_bits": nll} for updates, (loss, nll) in validations(log).items()
    ]
    return {
        "training_s": seconds + training_seconds(log),
        "versions": kept.get("versions"),
        "machine": kept.get("machine"),
        "curve": curve,
    }


def train(
    name: str, settings: Mapping[str, str], seed: int, args: argparse.Namespace, words: list[str] | None = None
) -> Path | None:
    """One training, as `owf train CONFIG --run WORK --seeds N` does it.

    Returns:
        Its folder; None if it failed.
    """
    from owf_fairseq.files.lines import write_lines
    from owf_fairseq.training.several import members, train_members

    config = args.work / "configs" / f"{name}.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    write_lines(config, [f"{flag}: {json.dumps(value)}" for flag, value in settings.items()])
    [member] = members([str(config)], ["--cpu", *(words or [])], str(args.work), [seed], str(args.data / "data"))
    problems = member.training.problems()
    if problems:
        raise InputError(problems)
    if not member.training.finished and train_members([member], 1, partial(print, flush=True)):
        return None
    return member.training.folder


def translate_all(row: Row, checkpoint: Path, raw: Path) -> dict[str, Path]:
    """Translates the test set and the validation set; what is done already stays.

    Returns:
        The files, by ``test``, ``valid`` and so on.

    Raises:
        InputError: a translation failed.
    """
    from owf_fairseq import cli
    from owf_fairseq.files.lines import read_lines, write_lines

    texts = {split: checkpoint.with_name(f"{split}.de") for split in ("test", "valid")}
    for split, output in texts.items():
        words = [checkpoint, "--input", raw / f"{split}.en", "--output", output, "--cpu"]
        if cli.main(["translate", *map(str, words)]):
            raise InputError(f"{checkpoint} can't translate {raw}/{split}.en, see above")
    if row.one_cache_matters:
        from one_cache import translated

        texts["test.one_cache"] = checkpoint.with_name("test.one_cache.de")
        write_lines(texts["test.one_cache"], translated(str(checkpoint), read_lines(raw / "test.en"), one_cache=True))
    return texts


def describe(run: Run, plan: Plan, checkpoint: Path) -> dict[str, Any]:
    """What the record says of the model."""
    from owf_fairseq.checkpoints.stored_model import read_model

    own = {"kind": KIND, "name": run.name, "seed": run.seed}
    return {**own, **vars(plan), "parameters": read_model(checkpoint).parameters}


def scores(texts: Mapping[str, Path], raw: Path) -> dict[str, Any]:
    """BLEU and chrF of every translation, and the reference that the test set's are of."""
    from owf_fairseq.scoring.evaluate import evaluate

    found: dict[str, Any] = {}
    for name, path in texts.items():
        made = evaluate([f"{name}={path}"], [str(raw / f"{name.partition('.')[0]}.de")], language="de")
        found[name] = {metric: entry["score"] for metric, entry in made["systems"][0]["scores"].items()}
        if name == "test":
            found["reference"] = made["references"][0]["sha256"]
    return found


def write_results(place: Path, record: Mapping[str, Any], texts: Mapping[str, Path]) -> None:
    """Writes the folder under another name, and renames it when all is there."""
    part = place.with_name(f".{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, path in texts.items():
        shutil.copyfile(path, part / f"{name}.de")
    (part / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    part.rename(place)


if __name__ == "__main__":
    sys.exit(main())
