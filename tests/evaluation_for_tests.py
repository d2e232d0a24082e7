"""Texts for the tests of `owf evaluate`: made up, or real system outputs where they are."""

import random
from pathlib import Path

import pytest

from owf_fairseq import cli
from owf_fairseq.tables import Report

WMT22 = Path(__file__).resolve().parents[2] / "shared" / "data" / "wmt22-en-de"
needs_wmt22 = pytest.mark.skipif(not WMT22.is_dir(), reason=f"the outputs of WMT22's systems are not in {WMT22}")

WORDS = "the a house tree river old new red runs sees makes under over quickly never always bread stone light".split()


def write(path, lines):
    """Writes lines to a file and returns its name."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def sentences(number, seed=1):
    """Made-up sentences of 6 to 14 words, always the same."""
    chance = random.Random(seed)
    made = [" ".join(chance.choices(WORDS, k=chance.randint(6, 14))) for _ in range(number)]
    return [f"{sentence.capitalize()}." for sentence in made]


def spoil(lines, share, seed):
    """The same sentences with that share of the words replaced."""
    chance = random.Random(seed)
    return [
        " ".join(chance.choice(WORDS) if chance.random() < share else word for word in line.split(" "))
        for line in lines
    ]


SOURCE, TRANSLATION = sentences(40, seed=9), sentences(40)
"""What the texts of the fixture `comet_texts` are made of."""


def make_comet(folder, kind, **flags):
    """A COMET model with random weights, as a Lightning trainer saves it; returns its checkpoint."""
    import pytorch_lightning
    import torch
    import yaml

    torch.manual_seed(4)
    model = kind(load_pretrained_weights=False, hidden_sizes=[8], **flags)
    trainer = pytorch_lightning.Trainer(logger=False, accelerator="cpu", default_root_dir=folder)
    trainer.strategy.connect(model)
    trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt")
    (folder / "hparams.yaml").write_text(yaml.safe_dump(dict(model.hparams)))
    return folder / "checkpoints" / "model.ckpt"


def score_with_comet(capsys, model, *arguments, status=0):
    """Runs `owf evaluate` with COMET alone on the two systems of `comet_texts`."""
    flags = ["--metrics", "comet", "--comet-model", str(model), "--src", "src.en"]
    return evaluate(capsys, "base.de", "wide.de", *flags, *arguments, status=status)


def evaluate(capsys, *arguments, status=0):
    """Runs `owf evaluate`; returns what it printed, and what it warned of or complained about."""
    assert cli.main(["evaluate", *map(str, arguments)]) == status
    captured = capsys.readouterr()
    return captured.out, captured.err


def report_cells(made: Report) -> list[dict[str, str]]:
    """The rows by column; the paper's column has the name of the one before it, with a P."""
    header = list(made.header)
    names = [f"{header[n - 1]} P" if name == "paper" else name for n, name in enumerate(header)]
    return [dict(zip(names, row, strict=True)) for row in made.rows]
