"""fairseq trains on the shards of `owf prepare`, another one each epoch, and what it makes translates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fairseq_for_tests import COPIER, run, text_sentences

from owf_fairseq import USER_DIR, cli
from owf_fairseq.files.lines import read_lines, write_lines


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a training of three epochs on two shards, and its log."""
    folder = tmp_path_factory.mktemp("shards")
    prefixes: list[str] = []
    for split, count in (("train", 60), ("valid", 8)):
        for lang in ("en", "de"):
            write_lines(folder / f"{split}.{lang}", text_sentences(count, seed=count))
        prefixes += [f"--{split}", str(folder / split)]
    flags = ["--langs", "en-de", "--vocab-size", "60", "--shards", "2", "--output", str(folder / "data")]
    assert cli.main(["prepare", *prefixes, *flags]) == 0
    data = ":".join(str(folder / "data" / name) for name in ("shard-00", "shard-01"))
    arguments = f"--task translation {COPIER} --optimizer adam --lr 0.005 --criterion cross_entropy --max-tokens 200"
    arguments += (
        " --required-batch-size-multiple 1 --num-workers 0 --cpu --seed 1 --no-progress-bar --log-format simple"
    )
    arguments += " --max-epoch 3"
    log = run("train", data, "--user-dir", USER_DIR, *arguments.split(), "--save-dir", folder / "model")
    return folder, log


def test_each_epoch_reads_another_shard(training: tuple[Path, str]) -> None:
    _, log = training
    read = re.findall(r"loaded (\S+) examples from: .*(shard-\d\d)/(train|valid)\.en-de\.en", log)
    # after the third epoch fairseq reads the shard of the fourth before it sees that there is none
    assert [shard for _, shard, split in read if split == "train"] == ["shard-00", "shard-01"] * 2
    assert {shard for _, shard, split in read if split == "valid"} == {"shard-00"}
    assert all(27 <= int(count) <= 33 for count, _, split in read if split == "train")
    assert log.count("| valid on 'valid' subset |") == 3


def test_its_checkpoint_translates_without_naming_the_data(training: tuple[Path, str]) -> None:
    folder, _ = training
    write_lines(folder / "input", ["the lamp opens the door.", "", "the fan stops the lock."])
    checkpoint, output = folder / "model" / "checkpoint_best.pt", folder / "output"
    command = ["translate", str(checkpoint), "--input", str(folder / "input"), "--output", str(output)]
    assert cli.main([*command, "--cpu", "--beam", "1"]) == 0
    lines = read_lines(output)
    assert [bool(line) for line in lines] == [True, False, True]
    assert "\u2581" not in "".join(lines)
