"""Runs fairseq's real commands, on data that is written here."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import random
import subprocess
import sys
from pathlib import Path
from unittest import mock

from fairseq import checkpoint_utils

from owf_fairseq import USER_DIR
from owf_fairseq import models as _models  # noqa: F401  registers the archs

WORDS = "a b c d e f g h i j k l".split()
REPOSITORY = Path(USER_DIR).parent


def run(command: str, *args: str | Path, stdin: str = "") -> str:
    """Runs ``fairseq-<command>`` in this process, which spares the imports; returns what it printed and logged."""
    module = importlib.import_module(f"fairseq_cli.{command}")
    vars(checkpoint_utils.save_checkpoint).pop("best", None)  # fairseq keeps the best score for the whole process
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(logging.Formatter("%(levelname)s | %(name)s | %(message)s"))  # as the commands themselves log
    argv = [f"fairseq-{command}", *map(str, args)]
    logging.getLogger().addHandler(handler)
    # fairseq's tools put a handler of their own on the output that they find when they are imported
    names = [name for name in logging.root.manager.loggerDict if name.startswith("fairseq")]
    levels = {name: logging.getLogger(name).level for name in names}
    logging.getLogger().setLevel(logging.INFO)
    try:
        with (
            mock.patch.object(sys, "argv", argv),
            mock.patch.object(sys, "stdin", io.StringIO(stdin)),
            contextlib.redirect_stdout(output),
        ):
            module.cli_main()
    finally:
        logging.getLogger().removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    return output.getvalue()


def spawn(
    command: str, *args: str | Path, cwd: Path, stdin: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs ``fairseq-<command>`` as a user does, as a process of its own in the folder ``cwd``."""
    program = Path(sys.executable).with_name(f"fairseq-{command}")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    return subprocess.run(
        [str(program), *map(str, args)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )


def write_data(folder: Path, sentences: int = 64, seed: int = 3) -> Path:
    """Writes a toy parallel corpus (the target is the source in capitals, reversed) and preprocesses it."""
    generator = random.Random(seed)
    for split, number in (("train", sentences), ("valid", 8), ("test", 8)):
        sources = [generator.choices(WORDS, k=generator.randint(1, 9)) for _ in range(number)]
        (folder / f"{split}.src").write_text("".join(" ".join(s) + "\n" for s in sources))
        (folder / f"{split}.tgt").write_text("".join(" ".join(reversed(s)).upper() + "\n" for s in sources))
    binary = folder / "data-bin"
    prefixes = [
        f"--{kind}pref={folder / name}" for kind, name in (("train", "train"), ("valid", "valid"), ("test", "test"))
    ]
    run("preprocess", "-s", "src", "-t", "tgt", *prefixes, "--destdir", binary, "--joined-dictionary", "--workers", "1")
    return binary


TRAINING = "--task translation --optimizer adam --lr 0.01 --criterion label_smoothed_cross_entropy".split()
TRAINING += "--batch-size 8 --required-batch-size-multiple 1 --num-workers 0 --cpu --dropout 0.1".split()
TRAINING += "--share-all-embeddings --no-progress-bar --log-format simple --log-interval 1 --seed 1".split()
DECODING = "--beam 2 --batch-size 3 --required-batch-size-multiple 1 --num-workers 0 --cpu".split()


def generated_ids(output: str) -> list[int]:
    """The numbers of the sentences that fairseq-generate translated, sorted."""
    return sorted(int(line.split("\t")[0][2:]) for line in output.splitlines() if line.startswith("H-"))


NOUNS = "lamp door window garden kitchen heater camera sensor fan lock".split()
VERBS = "opens closes starts stops shows hides".split()


def text_sentences(number: int, seed: int) -> list[str]:
    """Sentences of a toy language, which are their own translations."""
    generator = random.Random(seed)

    def phrase() -> str:
        return f"the {generator.choice(NOUNS)} {generator.choice(VERBS)} the {generator.choice(NOUNS)}"

    return [" and ".join(phrase() for _ in range(generator.randint(1, 2))) + "." for _ in range(number)]


COPIER = "--arch owf_tiny_one_wide_ffn --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 96"
COPIER += " --encoder-attention-heads 4 --decoder-attention-heads 4 --encoder-normalize-before"
COPIER += " --decoder-normalize-before --share-all-embeddings"


TOY_SENTENCES = (
    "the lamp opens the door.",
    "the fan stops the heater and the lock shows the sensor.",
    "the door closes the fan.",
)
"""Of the toy language, which the models of the tests copy."""


def train_on_text(folder: Path, model: str = COPIER, segmentation: str = "sentencepiece", updates: int = 450) -> Path:
    """Prepares toy text with ``owf prepare`` and trains a small model to copy it; returns its checkpoint."""
    from owf_fairseq import cli

    prefixes: list[str] = []
    for split, sentences in (("train", 300), ("valid", 8), ("test", 20)):
        text = "".join(f"{line}\n" for line in text_sentences(sentences, seed=sentences))
        for lang in ("en", "de"):
            (folder / f"{split}.{lang}").write_text(text)
        prefixes += [f"--{split}", str(folder / split)]
    prepare = ["prepare", *prefixes, "--langs", "en-de", "--vocab-size", "60", "--output", str(folder / "data")]
    kind = segmentation.removeprefix("separate-")
    separate = ["--separate-vocabularies"] if kind != segmentation else []
    assert cli.main([*prepare, "--segmentation", kind, *separate]) == 0
    training = f"--task translation {model} --optimizer adam --lr 0.005 --lr-scheduler inverse_sqrt"
    training += " --warmup-updates 100 --criterion cross_entropy"
    training += " --max-tokens 200 --required-batch-size-multiple 1 --num-workers 0 --cpu --dropout 0 --seed 1"
    training += f" --no-progress-bar --max-update {updates} --disable-validation --no-epoch-checkpoints"
    run("train", folder / "data", "--user-dir", USER_DIR, *training.split(), "--save-dir", folder / "model")
    return folder / "model" / "checkpoint_last.pt"
