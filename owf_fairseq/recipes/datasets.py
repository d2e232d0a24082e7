"""What the recipes know of each dataset, and of the languages of a run."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from itertools import permutations

from owf_fairseq.training.config import DATASETS
from owf_fairseq.training.run import Training

MULTILINGUAL = "translation_multi_simple_epoch"
"""fairseq's task of the dataset with many directions."""

_PAIRS = {folder: pair for pair, folder in DATASETS.items()}

_TOKENIZERS = {"ja": "char", "ko": "13a"}
"""For BLEU, where sacreBLEU's own tokenizer for a language needs MeCab."""


def is_multilingual(training: Training) -> bool:
    """Whether a model has many directions."""
    return bool(training.args.task == MULTILINGUAL)


def directions_of(training: Training) -> list[str]:
    """Of a model with many."""
    pairs = training.args.lang_pairs
    return list(pairs.split(",") if isinstance(pairs, str) else pairs)


def paper_pair(dataset: str) -> str:
    """The paper's data whose rows stand beside those of a dataset: English-German's for the small ones."""
    return _PAIRS.get(dataset, "en-de")


def default_table(dataset: str) -> str:
    """The table of the paper that most of a dataset's rows are in."""
    return "one_wide" if paper_pair(dataset) == "en-de" else "other"


def metrics(dataset: str) -> list[str]:
    """What translations are scored with: the paper's metrics, COMET if it is installed."""
    scores = ["spbleu" if paper_pair(dataset) == "multi" else "bleu", "chrf"]
    has_comet = dataset in _PAIRS and importlib.util.find_spec("comet") is not None
    return [*scores, *(["comet"] if has_comet else [])]


def tokenizer(dataset: str, target: str) -> list[str]:
    """The flag of ``owf evaluate`` for BLEU's tokenizer, where the language's own is none that everyone has."""
    small = dataset not in _PAIRS
    return ["--tokenize", _TOKENIZERS[target]] if small and target in _TOKENIZERS else []


def direction_flags(words: Sequence[str]) -> list[str]:
    """fairseq's ``--lang-pairs`` for ``--langs`` among its flags: every direction, where no other are asked for."""
    names = [word.split("=")[0] for word in words]
    if "--langs" not in names or "--lang-pairs" in names:
        return []
    place = names.index("--langs")
    langs = words[place].partition("=")[2] or (words[place + 1] if place + 1 < len(words) else "")
    return ["--lang-pairs", ",".join(map("-".join, permutations(langs.split(","), 2)))]
