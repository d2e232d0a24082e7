"""`prepare` with the real SentencePiece and fairseq-preprocess: fairseq reads back what the text says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq_for_tests import run
from prepare_for_tests import SIZE, files_of, read_binary, sentences, write_corpus

from owf_fairseq.data.prepare import Prepared, prepare
from owf_fairseq.data.segmentation import SEGMENTATION_RECORD, SPECIALS, Segmentation, clean
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import read_lines, write_lines


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def made(corpus: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Prepared]:
    folder = tmp_path_factory.mktemp("prepared") / "data"
    return folder, prepare(corpus, "en-de", folder, vocab_size=SIZE)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("lang", ["en", "de"])
def test_fairseq_reads_what_the_text_says(
    corpus: dict[str, str], made: tuple[Path, Prepared], split: str, lang: str
) -> None:
    folder, _ = made
    raw = read_lines(f"{corpus[split]}.{lang}")
    encoded = read_lines(folder / "encoded" / f"{split}.{lang}")
    segmentation = Segmentation.load(folder)
    assert encoded == [segmentation.encode(line) for line in raw]
    assert read_binary(folder, split, lang) == [f"{line} </s>" for line in encoded]
    assert [segmentation.decode(line) for line in encoded] == [clean(line) for line in raw]


def test_the_binary_data_is_what_fairseq_preprocess_writes(made: tuple[Path, Prepared], tmp_path: Path) -> None:
    folder, _ = made
    prefixes = [word for split in ("train", "valid", "test") for word in (f"--{split}pref", folder / "encoded" / split)]
    dictionary = ["--joined-dictionary", "--srcdict", folder / "dict.en.txt"]
    run("preprocess", "-s", "en", "-t", "de", *prefixes, *dictionary, "--workers", "1", "--destdir", tmp_path)
    written = files_of(tmp_path)
    del written["preprocess.log"]
    assert len(written) == 4 * 6 // 2 + 2
    for name, data in written.items():
        assert (folder / name).read_bytes() == data, name


def test_both_languages_have_one_dictionary_that_fairseq_reads(made: tuple[Path, Prepared]) -> None:
    from fairseq.data import Dictionary

    folder, prepared = made
    assert (folder / "dict.en.txt").read_bytes() == (folder / "dict.de.txt").read_bytes()
    dictionary = Dictionary.load(str(folder / "dict.en.txt"))
    assert dictionary.symbols == [*SPECIALS, *Segmentation.load(folder).symbols([], None)]
    assert len(dictionary) == prepared.vocabulary == SIZE


@pytest.mark.parametrize("kind", ["sentencepiece", "moses-bpe", "none"])
def test_the_dictionary_is_filled_up_as_fairseq_does(corpus: dict[str, str], tmp_path: Path, kind: str) -> None:
    from fairseq.data import Dictionary

    prepared = prepare(corpus, "en-de", tmp_path / "data", vocab_size=53, segmentation=kind)
    ours = Dictionary.load(str(tmp_path / "data/dict.de.txt"))
    theirs = Dictionary()
    for symbol in Segmentation.load(tmp_path / "data").symbols(
        (line for lang in ("en", "de") for line in read_lines(tmp_path / f"data/encoded/train.{lang}")), None
    ):
        theirs.add_symbol(symbol)
    assert len(theirs) % 8
    theirs.pad_to_multiple_(8)
    assert ours.symbols == theirs.symbols
    assert prepared.vocabulary == len(theirs)


def test_counts_are_those_of_the_files(made: tuple[Path, Prepared]) -> None:
    folder, prepared = made
    assert (prepared.source, prepared.target, prepared.dropped) == ("en", "de", 0)
    assert prepared.pairs == {"train": 120, "valid": 12, "test": 9}
    for name, tokens in prepared.tokens.items():
        assert tokens == sum(len(line.split(" ")) for line in read_lines(folder / "encoded" / name))


def test_same_bytes_each_time(corpus: dict[str, str], made: tuple[Path, Prepared], tmp_path: Path) -> None:
    folder, prepared = made
    assert prepare(corpus, "en-de", tmp_path / "elsewhere", vocab_size=SIZE) == prepared
    assert len(files_of(folder)) == 4 * 6 // 2 + 6 + 5
    assert files_of(tmp_path / "elsewhere") == files_of(folder)


def test_the_record_is_enough_to_segment(made: tuple[Path, Prepared]) -> None:
    folder, _ = made
    record = json.loads((folder / SEGMENTATION_RECORD).read_text())
    assert (record["type"], record["source"], record["target"]) == ("sentencepiece", "en", "de")
    assert not os.path.isabs(record["model"])
    assert str(folder.parent) not in (folder / SEGMENTATION_RECORD).read_text()
    assert str(folder.parent).encode() not in (folder / record["model"]).read_bytes()


@pytest.mark.parametrize("special", SPECIALS)
@pytest.mark.parametrize("seen", [True, False], ids=["in training text", "not in training text"])
def test_no_text_becomes_a_special_symbol(tmp_path: Path, special: str, seen: bool) -> None:
    prefixes = {split: str(tmp_path / split) for split in ("train", "valid")}
    lines = [f"ein {line}" for line in sentences(0, 100)]
    if seen:
        lines += [f"{line} {special} < / s > p a d" for line in lines]
    for lang in ("en", "de"):
        write_lines(tmp_path / f"train.{lang}", lines)
        write_lines(tmp_path / f"valid.{lang}", [f"door {special}", special, f"{special} {special}", f"<{special}>"])
    prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE)
    for line in read_binary(tmp_path / "data", "valid", "en"):
        symbols = line.split(" ")
        assert symbols[-1] == "</s>"
        assert not set(symbols[:-1]) & {"<s>", "<pad>", "</s>"}


@pytest.mark.parametrize("special", SPECIALS)
def test_a_run_of_unknown_characters_is_no_special_symbol(tmp_path: Path, special: str) -> None:
    prefixes = {split: str(tmp_path / split) for split in ("train", "valid")}
    for lang in ("en", "de"):
        write_lines(tmp_path / f"train.{lang}", [line.upper() for line in sentences(0, 100)])
        write_lines(tmp_path / f"valid.{lang}", [f"THE {special}", f"{special}"])
    prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE)
    read = [line.split(" ") for line in read_binary(tmp_path / "data", "valid", "en")]
    assert [symbols[-2:] for symbols in read] == [["<unk>", "</s>"]] * 2
    assert [symbols.count("</s>") for symbols in read] == [1, 1]


def test_characters_without_a_piece_are_counted_as_unknown(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path)
    for lang in ("en", "de"):
        write_lines(tmp_path / f"valid.{lang}", ["the \u2603 lamp", "a lamp"])
    made = prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE)
    assert (made.unknown["valid.en"], made.unknown["train.en"]) == (1, 0)
    assert "<unk>" in read_binary(tmp_path / "data", "valid", "en")[0].split(" ")


def test_pairs_with_an_empty_side_are_dropped_from_train_only(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path)
    english, german = (read_lines(tmp_path / f"train.{lang}") for lang in ("en", "de"))
    write_lines(tmp_path / "train.en", ["", *english, "lamp", " \t "])
    write_lines(tmp_path / "train.de", ["TÜR", *german, "\u2028", ""])
    made = prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE)
    assert (made.dropped, made.pairs["train"]) == (3, 120)
    model = Segmentation.load(tmp_path / "data")
    assert read_lines(tmp_path / "data" / "encoded" / "train.de") == [model.encode(line) for line in german]


def test_languages_may_hold_a_hyphen(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path, "en", "zh-Hans")
    made = prepare(prefixes, "en-zh-Hans", tmp_path / "data", vocab_size=SIZE)
    assert (made.source, made.target) == ("en", "zh-Hans")
    assert len(read_binary(tmp_path / "data", "test", "zh-Hans", "en-zh-Hans")) == 9


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path)
    write_lines(tmp_path / "train.de", ["EINE ZEILE"])
    (tmp_path / "valid.en").write_bytes(b"lamp\n" * 5 + b"\xff\n" + b"lamp\n" * 6)
    lines = read_lines(tmp_path / "test.de")
    write_lines(tmp_path / "test.de", [*lines[:2], " ", *lines[3:]])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep me")
    with pytest.raises(InputError) as error:
        prepare(prefixes, "en-de", tmp_path / "out", vocab_size=3, character_coverage=2)
    expected = [
        "out holds files that `owf prepare` didn't make (mine)",
        "`--vocab-size` must be above 4, but is 3",
        "`--character-coverage` must be from 0.9 to 1, but is 2",
        f"{tmp_path / 'train.en'} has 120 lines, but {tmp_path / 'train.de'} has 1",
        f"{tmp_path / 'valid.en'}, line 6: not UTF-8",
        f"empty sentences: {tmp_path / 'test.de'}, line 3;",
    ]
    assert len(error.value.problems) == len(expected)
    for problem, part in zip(error.value.problems, expected, strict=True):
        assert part in problem
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("langs", "message"),
    [("en", "two different languages"), ("en-en", "two different languages"), ("en-fr", r"there must be .*train\.fr")],
)
def test_languages_without_files(corpus: dict[str, str], tmp_path: Path, langs: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare(corpus, langs, tmp_path / "data", vocab_size=SIZE)


def test_missing_and_empty_files(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path)
    (tmp_path / "valid.de").unlink()
    for lang in ("en", "de"):
        write_lines(tmp_path / f"test.{lang}", [])
    with pytest.raises(InputError, match=r"valid\.de can't be read: No such file") as error:
        prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE)
    assert "no pair of sentences" in error.value.problems[1]


def test_a_vocabulary_too_small_for_the_characters(corpus: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`--vocab-size` must be at least 46 for this text, but is 10"):
        prepare(corpus, "en-de", tmp_path / "data", vocab_size=10)
    assert list(tmp_path.iterdir()) == []


def test_a_vocabulary_too_large_for_the_text_is_made_smaller(corpus: dict[str, str], tmp_path: Path) -> None:
    assert SIZE < prepare(corpus, "en-de", tmp_path / "data", vocab_size=5000).vocabulary < 1000


def test_it_leaves_no_log_handler_behind_and_prints_nothing(corpus: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import json, logging, sys; from owf_fairseq.data.prepare import prepare\n"
        "prepare(json.loads(sys.argv[1]), 'en-de', sys.argv[2], vocab_size=60)\n"
        "assert logging.getLogger('fairseq_cli.preprocess').handlers == []"
    )
    command = [sys.executable, "-c", code, json.dumps(corpus), str(tmp_path / "data")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    assert done.stdout == ""


def test_a_folder_without_a_usable_record(made: tuple[Path, Prepared], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"segmentation\.json can't be read"):
        Segmentation.load(tmp_path)
    for record, message in [
        ("{", "can't be read"),
        ('{"type": "sentencepiece"}', "lacks model, source, target"),
        ('{"type": "other", "model": "m", "source": "a", "target": "b"}', "is of type 'other'"),
        ('{"type": "sentencepiece", "model": "m", "source": "a", "target": "b"}', "names m, which is not in"),
    ]:
        (tmp_path / SEGMENTATION_RECORD).write_text(record)
        with pytest.raises(InputError, match=message):
            Segmentation.load(tmp_path)


def test_clean_composes_characters_and_leaves_the_rest() -> None:
    assert clean("  gro\u0308ße\u2028\u2581\x07ｆｕｌｌ…\t") == "größe ｆｕｌｌ…"


def test_what_is_prepared_is_not_prepared_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prefixes = write_corpus(tmp_path)
    first = prepare(prefixes, "en-de", tmp_path / "data", SIZE, segmentation="none")
    before = files_of(tmp_path / "data")
    with monkeypatch.context() as patched:
        patched.setattr("owf_fairseq.data.prepare.Preparation", None)  # it would be called
        assert prepare(prefixes, "en-de", tmp_path / "data", SIZE, segmentation="none") == first
    assert "data: made before with the same settings and inputs" in capsys.readouterr().err
    with pytest.raises(InputError, match="made with other settings .*--shards. 1, now 2"):
        prepare(prefixes, "en-de", tmp_path / "data", SIZE, segmentation="none", shards=2)
    assert files_of(tmp_path / "data") == before
    write_lines(tmp_path / "valid.en", ["the lamp"] * 12)
    assert prepare(prefixes, "en-de", tmp_path / "data", SIZE, segmentation="none") != first
    prepare(prefixes, "en-de", tmp_path / "data", SIZE, segmentation="none", shards=2, overwrite=True)
    assert (tmp_path / "data" / "shard-01").is_dir()


def test_the_text_that_is_read_is_not_removed(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path)
    prepare(prefixes, "en-de", tmp_path / "data", SIZE, segmentation="none")
    before = files_of(tmp_path / "data")
    encoded = {split: str(tmp_path / "data" / "encoded" / split) for split in prefixes}
    for overwrite in (False, True):
        with pytest.raises(InputError, match="holds the input .*encoded/train.en"):
            prepare(encoded, "en-de", tmp_path / "data", SIZE, segmentation="none", overwrite=overwrite)
    assert files_of(tmp_path / "data") == before
