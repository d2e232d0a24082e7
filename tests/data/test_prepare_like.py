"""A segmentation from elsewhere: of other data, or learnt from other text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prepare_for_tests import SIZE, read_binary, write_corpus

from owf_fairseq import cli
from owf_fairseq.data.prepare import prepare
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import read_lines, write_lines


@pytest.fixture(scope="module", params=["sentencepiece", "moses-bpe", "none"])
def first(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of each kind, English and German."""
    folder = tmp_path_factory.mktemp(request.param)
    size = 20 if request.param == "moses-bpe" else SIZE
    prepare(write_corpus(folder), "en-de", folder / "data", size, segmentation=request.param)
    return folder / "data"


def other_corpus(folder: Path) -> dict[str, str]:
    """French and Romanian of other words; a few of those of the first corpus."""
    for split in ("train", "valid"):
        write_lines(folder / f"{split}.fr", ["the lamp", "zxq opens", "every door"] * 4)
        write_lines(folder / f"{split}.ro", ["THE LAMP", "ZXQ OPENS", "EVERY DOOR"] * 4)
    return {split: str(folder / split) for split in ("train", "valid")}


def test_like_takes_over_all_but_the_languages(first: Path, tmp_path: Path) -> None:
    made = prepare(other_corpus(tmp_path), "fr-ro", tmp_path / "data", like=first)
    before, record = (json.loads((folder / "segmentation.json").read_text()) for folder in (first, tmp_path / "data"))
    assert record == {**before, "source": "fr", "target": "ro"}
    for lang in ("fr", "ro"):
        assert (tmp_path / "data" / f"dict.{lang}.txt").read_bytes() == (first / "dict.en.txt").read_bytes()
    assert made.vocabulary == len(read_lines(first / "dict.en.txt")) + 4
    segmentation = Segmentation.load(first)
    encoded = [segmentation.encode(line, "en") for line in read_lines(tmp_path / "train.fr")]
    assert read_lines(tmp_path / "data" / "encoded" / "train.fr") == encoded
    assert made.unknown["train.fr"] >= 4
    assert [line.split(" ").count("<unk>") > 0 for line in read_binary(tmp_path / "data", "train", "fr", "fr-ro")] == [
        False, True, False,
    ] * 4  # fmt: skip
    assert made.unknown["train.fr"] == sum(
        line.split(" ").count("<unk>") for line in read_binary(tmp_path / "data", "train", "fr", "fr-ro")
    )


def test_like_takes_data_in_shards(tmp_path: Path) -> None:
    prepare(write_corpus(tmp_path), "en-de", tmp_path / "sharded", vocab_size=SIZE, shards=2)
    prepare(other_corpus(tmp_path), "fr-ro", tmp_path / "data", like=tmp_path / "sharded")
    model = "sentencepiece.model"
    assert (tmp_path / "data" / model).read_bytes() == (tmp_path / "sharded" / "shard-00" / model).read_bytes()


def test_like_and_the_flags_of_learning_exclude_each_other(
    first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefixes = [word for split, prefix in other_corpus(tmp_path).items() for word in (f"--{split}", prefix)]
    command = ["prepare", *prefixes, "--langs", "fr-ro", "--output", str(tmp_path / "data")]
    assert cli.main([*command, "--like", str(first), "--vocab-size", "32000", "--sample", "9"]) == 2
    assert "leave out `--vocab-size` and `--sample`" in capsys.readouterr().err
    assert cli.main([*command, "--like", str(first)]) == 0


def test_like_a_folder_that_is_not_complete(first: Path, tmp_path: Path) -> None:
    corpus = other_corpus(tmp_path)
    with pytest.raises(InputError, match=r"`--like` .*empty: .*segmentation\.json can't be read"):
        prepare(corpus, "fr-ro", tmp_path / "data", like=tmp_path / "empty")
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in first.iterdir():
        if path.is_file() and not path.name.startswith("dict"):
            (copy / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="there is no dictionary"):
        prepare(corpus, "fr-ro", tmp_path / "data", like=copy)
    write_lines(copy / "dict.en.txt", ["a 1"])
    write_lines(copy / "dict.de.txt", ["b 1"])
    with pytest.raises(InputError, match="dictionaries that differ"):
        prepare(corpus, "fr-ro", tmp_path / "data", like=copy)
    assert not (tmp_path / "data").exists()


def test_the_segmentation_is_learnt_from_the_text_that_is_named(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    write_lines(tmp_path / "fr", ["zxq zxq zxqzxq", ""] * 20)
    write_lines(tmp_path / "ro", ["the\u00a0lamp opens the door", "ТЫ УЖ"] * 20)
    prepare(
        corpus, "en-de", tmp_path / "data", vocab_size=30, segmentation_text=[str(tmp_path / n) for n in ("fr", "ro")]
    )
    pieces = " ".join(read_lines(tmp_path / "data" / "dict.en.txt")).partition("madeupword")[0]
    for letter in "zxqlampТЫУЖ":
        assert letter in pieces
    for letter in "wößGK\u00a0":  # of the training pairs, and what is a space in cleaned text
        assert letter not in pieces


def test_text_to_learn_from_that_cannot_be_used(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    (tmp_path / "bad").write_bytes(b"lamp\n\xff\n")
    with pytest.raises(InputError) as error:
        prepare(
            corpus,
            "en-de",
            tmp_path / "data",
            segmentation="moses-bpe",
            segmentation_text=[str(tmp_path / "bad"), str(tmp_path / "none")],
        )
    bad, missing, kind = error.value.problems
    assert bad == f"`--segmentation-text` {tmp_path / 'bad'}: {tmp_path / 'bad'}, line 2: not UTF-8 (byte 1 is 0xff)"
    assert "none can't be read" in missing
    assert "`--segmentation-text` is for sentencepiece, not for `--segmentation` moses-bpe" in kind
