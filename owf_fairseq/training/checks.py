"""What fairseq would find out too late, or tell in a way that nobody understands: looked at before it starts."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.models.transformer import DEFAULT_MAX_SOURCE_POSITIONS

from owf_fairseq.data.recorded import RecordedData, languages
from owf_fairseq.errors import collect
from owf_fairseq.files.fingerprint import KEY, changed_files, fingerprint
from owf_fairseq.resuming import BATCHES
from owf_fairseq.training.start import START, Start

GROWING = ("bleu", "accuracy")
"""Validation metrics that are better when they are larger; of other known ones, the smaller value is the better."""

FALLING = ("loss", "nll_loss", "ppl")

MAXIMIZE = "maximize-best-checkpoint-metric"

CROSS_ENTROPY = ("cross_entropy", "label_smoothed_cross_entropy")
"""Criteria whose metrics are known here."""


def metric_problems(args: argparse.Namespace) -> list[str]:
    """What is wrong with the metric that says which checkpoint is the best one."""
    metric = args.best_checkpoint_metric
    flag = f"`--best-checkpoint-metric` {metric}"
    if metric == "bleu" and not getattr(args, "eval_bleu", False):
        if hasattr(args, "eval_bleu"):
            return [f"{flag} needs `--eval-bleu`: without it validation measures no BLEU"]
        return [f"{flag}: task {args.task} measures no BLEU; `loss` is what it has"]
    if args.criterion in CROSS_ENTROPY:
        if metric == "accuracy" and not getattr(args, "report_accuracy", False):
            return [f"{flag} needs `--report-accuracy` (of criterion label_smoothed_cross_entropy)"]
        if metric not in (*GROWING, *FALLING):
            return [f"{flag}: criterion {args.criterion} has {', '.join(FALLING)}, and with more flags accuracy, bleu"]
        if metric == "nll_loss" and args.criterion == "cross_entropy" and not args.sentence_avg:
            return [f"{flag}: with criterion cross_entropy it is the same as `loss`, and only that is there"]
    if metric in FALLING and args.maximize_best_checkpoint_metric:
        return [f"`--{MAXIMIZE}` makes the worst checkpoint the best one: a smaller {metric} is better. Leave it out"]
    return []


def language_flags(args: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    """Languages of which fairseq cannot find out: it takes the name of the pair ``en-pt-BR`` for none."""
    if args.task != "translation" or args.source_lang or args.target_lang:
        return {}
    found = languages(_folder(args))
    if found is None or not any("-" in lang for lang in found):
        return {}
    return {"source-lang": (found[0],), "target-lang": (found[1],)}


def language_problems(args: argparse.Namespace) -> list[str]:
    """What fairseq's multilingual tasks cannot split."""
    pairs = getattr(args, "lang_pairs", None) or ()
    pairs = pairs.split(",") if isinstance(pairs, str) else pairs
    return [
        f"`--lang-pairs` {pair}: fairseq splits a pair at its one hyphen, so that a language's code may have none: "
        "write pt_BR, and name the files so"
        for pair in pairs
        if pair.count("-") != 1
    ]


def start_problems(args: argparse.Namespace, start: Start, given: Mapping[str, Any]) -> list[str]:
    """What forbids to start at the checkpoint that is to be loaded."""
    problems = list(start.problems)
    others = [f"`--{name}`" for name in START if name in given]
    if args.finetune_from_model and others:
        problems.append(f"`--finetune-from-model` begins afresh: leave out {', '.join(others)}")
    if args.write_checkpoints_asynchronously and importlib.util.find_spec("iopath") is None:
        problems.append("`--save-async` needs iopath, which is not installed: leave it out, or `pip install iopath`")
    if start.state is None:
        return problems
    different = _other_dictionary(args, start) or _other_content(args, start)
    return [*problems, *different, *_lost_place(args, start)]


def _other_dictionary(args: argparse.Namespace, start: Start) -> list[str]:
    """Weights for another number of symbols: fairseq shows all of their sizes."""
    data = _translation_data(args)
    if data is None or start.state is None:
        return []
    problems: list[str] = []
    dictionaries = collect(problems, data.dictionaries)
    for side, lang, dictionary in zip(
        ("encoder", "decoder"), (data.source, data.target), dictionaries or (), strict=False
    ):
        weight = start.state["model"].get(f"{side}.embed_tokens.weight")
        if weight is not None and len(weight) != len(dictionary):
            problems.append(
                f"{start.checkpoint} has {len(weight):,} symbols for {lang}, and {data.folder}/dict.{lang}.txt has "
                f"{len(dictionary):,}: {_LIKE}"
            )
    return problems


_LIKE = "give the data that it was trained on, or prepare others with the same symbols (`owf prepare --like DATA`)"


def _other_content(args: argparse.Namespace, start: Start) -> list[str]:
    """As many symbols as before, but others: every word would stand for another."""
    extra = (start.state or {}).get("extra_state") or {}
    names = changed_files(extra.get(KEY), fingerprint(args.data))
    if not names:
        return []
    return [f"{start.checkpoint} was trained with another {', '.join(names)} than there is in {args.data}: {_LIKE}"]


def _lost_place(args: argparse.Namespace, start: Start) -> list[str]:
    """A checkpoint that does not say of how many batches it has read some, if there are others now."""
    state = start.state or {}
    place = (state.get("extra_state") or {}).get("train_iterator") or {}
    begins_afresh = args.reset_dataloader or (
        args.finetune_from_model and start.checkpoint == Path(args.finetune_from_model)
    )
    if not place.get("iterations_in_epoch") or BATCHES in place or begins_afresh:
        return []
    cfg = state.get("cfg") or {}
    before = [
        *((cfg.get("dataset") or {}).get(name) for name in ("max_tokens", "batch_size")),
        (cfg.get("distributed_training") or {}).get("distributed_world_size"),
    ]
    now = [args.max_tokens, args.batch_size, args.distributed_world_size]
    if before == now:
        return []
    described = "`--max-tokens` {}, `--batch-size` {} and {} processes"
    return [
        f"{start.checkpoint} was written in the middle of an epoch with {described.format(*before)}, and doesn't say "
        f"how many batches the epoch has; with {described.format(*now)} its place in the epoch is not known: give the "
        "settings of before, or `--reset-dataloader` to begin with the first epoch's data again"
    ]


def validation_problems(args: argparse.Namespace) -> list[str]:
    """Validation sentences that fairseq refuses, after everything is loaded."""
    data = _translation_data(args)
    if data is None or args.disable_validation:
        return []
    limit = int(args.max_tokens_valid or args.max_tokens or 0)  # fairseq leaves the first one a text
    problems = []
    for subset in args.valid_subset.split(","):
        found = [data.sizes(subset, lang) for lang in (data.source, data.target)]
        if any(sizes is None or len(sizes) == 0 for sizes in found) or args.truncate_source:
            continue
        source, target = (np.asarray(sizes) for sizes in found)
        if len(source) != len(target):
            continue  # fairseq says so
        allowed = np.ones(len(source), dtype=bool)
        for sizes, lang, name in (
            (source, data.source, "max-source-positions"),
            (target, data.target, "max-target-positions"),
        ):
            longest = getattr(args, name.replace("-", "_"), None) or DEFAULT_MAX_SOURCE_POSITIONS
            too_long = sizes > longest
            if too_long.any() and not args.skip_invalid_size_inputs_valid_test:
                problems.append(
                    f"{data.folder}: sentence {int(too_long.argmax()) + 1} of `{subset}` has {int(sizes.max()):,} "
                    f"tokens in {lang}, and `--{name}` allows {longest:,}: shorten it, or leave such sentences out of "
                    "validation with `--skip-invalid-size-inputs-valid-test`"
                )
            allowed &= ~too_long
        longer = np.maximum(source, target) * allowed
        if limit and longer.max() > limit:
            problems.append(
                f"{data.folder}: sentence {int(longer.argmax()) + 1} of `{subset}` has {int(longer.max()):,} tokens, "
                f"more than a batch may have ({limit:,}): give `--max-tokens-valid {int(longer.max())}` or more"
            )
    return problems


def _folder(args: argparse.Namespace) -> Path:
    return Path(args.data.split(os.pathsep)[0])


def _translation_data(args: argparse.Namespace) -> RecordedData | None:
    """The data of a training of one direction; None for others, or if they are not as they should be."""
    if args.task != "translation":
        return None
    folder = _folder(args)
    langs = (args.source_lang, args.target_lang)
    found = langs if all(langs) else languages(folder)
    if found is None or not all((folder / f"dict.{lang}.txt").is_file() for lang in found):
        return None
    return RecordedData(folder, *found)
