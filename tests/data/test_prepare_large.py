"""What `owf prepare` does for large corpora, on a small one: processes, shards, samples, and going on where it was."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prepare_for_tests import SIZE, files_of, read_binary, write_corpus

from owf_fairseq import cli
from owf_fairseq.data import preparation, shards
from owf_fairseq.data.prepare import prepare
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files import work_folder
from owf_fairseq.files.lines import read_lines, write_lines

PAIRS = 120


@pytest.fixture
def chunks_of_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "CHUNK", 10)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With an empty side in three pairs of the training data."""
    folder = tmp_path_factory.mktemp("corpus")
    prefixes = write_corpus(folder, pairs=PAIRS)
    for lang, blank in (("en", (3, 50)), ("de", (50, 117))):
        lines = read_lines(folder / f"train.{lang}")
        write_lines(folder / f"train.{lang}", ["" if n in blank else line for n, line in enumerate(lines)])
    return prefixes


@pytest.fixture(scope="module")
def whole(corpus: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is made in one piece, in this process."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    prepare(corpus, "en-de", folder, vocab_size=SIZE)
    return folder


@pytest.mark.parametrize("kind", ["sentencepiece", "moses-bpe", "none"])
def test_chunks_make_no_difference(
    corpus: dict[str, str], tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 20 if kind == "moses-bpe" else SIZE
    one = prepare(corpus, "en-de", tmp_path / "one", size, segmentation=kind)
    monkeypatch.setattr(shards, "CHUNK", 10)
    many = prepare(corpus, "en-de", tmp_path / "many", size, segmentation=kind, workers=1)
    assert many == one
    assert one.dropped == 3
    assert files_of(tmp_path / "many") == files_of(tmp_path / "one")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many", "one"]


@pytest.mark.usefixtures("chunks_of_ten")
def test_processes_make_no_difference(
    corpus: dict[str, str], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["owf"])  # so that the processes import what those of the command do
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE, workers=2)
    assert files_of(tmp_path / "data") == files_of(whole)


@pytest.mark.usefixtures("chunks_of_ten")
@pytest.mark.parametrize(
    ("step", "call"),
    [
        ("check_chunk", 1),
        ("check_chunk", 20),
        ("learn_segmentation", 1),
        ("encode", 2),
        ("encode", 40),
        ("binarize", 7),
        ("make_shard", 2),
    ],
)
def test_it_goes_on_where_it_was(
    corpus: dict[str, str], tmp_path: Path, step: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step fails, once; the second run does again what wasn't finished, and nothing else."""
    made = {"vocab_size": SIZE, "shards": 2, "workers": 1}
    prepare(corpus, "en-de", tmp_path / "undisturbed", **made)
    calls: list[str] = []
    armed = True

    def counted(task: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(task)
        def run(*arguments: Any) -> Any:
            calls.append(task.__name__)
            if armed and task.__name__ == step and calls.count(step) == call:
                raise OSError("no space left on device")
            return task(*arguments)

        return run

    for task in ("check_chunk", "learn_segmentation", "encode", "binarize", "make_shard"):
        monkeypatch.setattr(preparation, task, counted(getattr(preparation, task)))
    with pytest.raises(OSError, match="no space"):
        prepare(corpus, "en-de", tmp_path / "data", **made)
    assert not (tmp_path / "data").exists()
    assert (tmp_path / ".data.partial").is_dir()
    if step == "make_shard":  # what is in the first shard isn't there twice
        assert {int(path.name[:6]) % 2 for path in (tmp_path / ".data.partial" / "chunks").iterdir()} == {1}
    finished = {task: calls.count(task) - (task == step) for task in calls}
    calls.clear()
    armed = False
    prepare(corpus, "en-de", tmp_path / "data", **made)
    chunks = 40 + 2 + 1  # of train, by threes; of valid and test, by tens
    for task, number in {"check_chunk": chunks, "learn_segmentation": 1, "encode": chunks, "binarize": chunks}.items():
        assert calls.count(task) == number - finished.get(task, 0), task
    assert files_of(tmp_path / "data") == files_of(tmp_path / "undisturbed")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "undisturbed"]


def interrupted(monkeypatch: pytest.MonkeyPatch, corpus: dict[str, str], output: Path, size: int) -> None:
    """Prepare up to the last step."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(preparation, "make_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare(corpus, "en-de", output, vocab_size=size, workers=1, overwrite=True)


@pytest.mark.usefixtures("chunks_of_ten")
@pytest.mark.parametrize("changed", ["vocabulary", "text"])
def test_what_was_changed_is_made_afresh(tmp_path: Path, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_corpus(tmp_path)
    interrupted(monkeypatch, corpus, tmp_path / "data", SIZE)
    if changed == "text":
        lines = read_lines(tmp_path / "train.en")
        write_lines(tmp_path / "train.en", ["a new line", *lines[1:]])
    size = SIZE - 5 if changed == "vocabulary" else SIZE
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=size, workers=1)
    prepare(corpus, "en-de", tmp_path / "undisturbed", vocab_size=size, workers=1)
    assert files_of(tmp_path / "data") == files_of(tmp_path / "undisturbed")


@pytest.mark.parametrize("call", [1, 3])
def test_an_interruption_while_it_tidies_up(
    corpus: dict[str, str], whole: Path, tmp_path: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, calls = work_folder.remove, []

    def stop(path: Path) -> None:
        calls.append(path)
        if len(calls) == call:
            raise KeyboardInterrupt
        remove(path)

    with monkeypatch.context() as patched:
        patched.setattr(work_folder, "remove", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE)
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE)
    assert files_of(tmp_path / "data") == files_of(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_what_was_there_stays_until_the_new_is_complete(
    corpus: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE)
    before = files_of(tmp_path / "data")
    interrupted(monkeypatch, corpus, tmp_path / "data", SIZE - 5)
    assert files_of(tmp_path / "data") == before
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE - 5, overwrite=True)
    assert files_of(tmp_path / "data") != before


def test_shards_are_complete_equal_and_alike(corpus: dict[str, str], whole: Path, tmp_path: Path) -> None:
    made = prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE, shards=3)
    assert list(made.shards) == ["shard-00", "shard-01", "shard-02"]
    assert sum(made.shards.values()) == made.pairs["train"] == PAIRS - 3
    shared = ["dict.en.txt", "dict.de.txt", "segmentation.json", "sentencepiece.model"]
    parts: list[tuple[str, str]] = []
    for name, pairs in made.shards.items():
        folder = tmp_path / "data" / name
        assert abs(pairs - PAIRS / 3) <= 5
        for file in shared:
            assert (folder / file).read_bytes() == (whole / file).read_bytes()
        sides = [read_binary(folder, "train", lang) for lang in ("en", "de")]
        assert len(sides[0]) == len(sides[1]) == pairs
        assert [f"{line} </s>" for line in read_lines(folder / "encoded" / "train.de")] == sides[1]
        parts += zip(*sides, strict=True)
        held_out = {path.name for path in folder.glob("*.idx") if not path.name.startswith("train")}
        assert len(held_out) == (4 if name == "shard-00" else 0)
    all_pairs = list(zip(read_binary(whole, "train", "en"), read_binary(whole, "train", "de"), strict=True))
    assert sorted(parts) == sorted(all_pairs)
    # each has pairs from the beginning, the middle and the end of the corpus
    for name in made.shards:
        places = [all_pairs.index(pair) for pair in parts[: made.shards[name]]]
        parts = parts[made.shards[name] :]
        assert places == sorted(places)
        assert all(any(start <= place < start + PAIRS // 6 for place in places) for start in range(0, PAIRS - 20, 20))
    for split in ("valid", "test"):
        assert read_binary(tmp_path / "data" / "shard-00", split, "de") == read_binary(whole, split, "de")


def test_more_shards_than_pairs_are_refused(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path, pairs=5)
    with pytest.raises(InputError, match="`--shards` 6: there are only 5 training pairs"):
        prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE, shards=6)
    write_lines(tmp_path / "train.en", ["lamp", "", "", "", ""])
    with pytest.raises(InputError, match="`--shards` 2: there are only 1 training pairs with text"):
        prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE, shards=2)


def test_shards_that_will_take_much_memory_are_worth_a_word(
    corpus: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "_LARGE_SHARD", 100)
    monkeypatch.setattr(preparation, "_BYTES_A_PAIR", 1e8)
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE)
    assert "117 training pairs in one folder" in (told := capsys.readouterr().err)
    assert "about 12 GB for them; `--shards` makes it less" in told
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE, shards=2, overwrite=True)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("chunks_of_ten")
def test_all_problems_of_all_chunks_are_reported_in_order(tmp_path: Path) -> None:
    prefixes = write_corpus(tmp_path, pairs=PAIRS)
    lines = (tmp_path / "train.de").read_bytes().split(b"\n")
    bad = [4, *range(30, 44)]
    (tmp_path / "train.de").write_bytes(b"\n".join(b"\xff" if n in bad else line for n, line in enumerate(lines)))
    valid = read_lines(tmp_path / "valid.en")
    write_lines(tmp_path / "valid.en", [*valid[:10], "", " "])
    with pytest.raises(InputError) as error:
        prepare(prefixes, "en-de", tmp_path / "data", vocab_size=SIZE, workers=1)
    *faults, more, empty = error.value.problems
    train, named = tmp_path / "train.de", [5, *range(31, 40)]
    assert faults == [f"--train {tmp_path / 'train'}: {train}, line {n}: not UTF-8 (byte 1 is 0xff)" for n in named]
    assert more.endswith(f"{train}: 5 more lines are not UTF-8")
    where = [f"{tmp_path / 'valid.en'}, line {n}" for n in (11, 12)]
    assert empty.endswith(f"empty sentences: {'; '.join(where)}; remove them from both files")
    assert not [path for path in tmp_path.iterdir() if "data" in path.name]


@pytest.mark.usefixtures("chunks_of_ten")
def test_a_sample_is_of_the_size_asked_for_and_from_all_parts(
    corpus: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[int, list[list[str]]] = {}
    train = preparation.learn_segmentation

    def kept(folder: Path, text: Any, learning: Any) -> Segmentation:
        sides = [list(side) for side in text.sides]
        drawn[learning.sample] = sides
        return train(folder, type(text)(text.source, text.target, tuple(sides)), learning)

    monkeypatch.setattr(preparation, "learn_segmentation", kept)
    for sample in (PAIRS, 60):
        prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE, sample=sample, workers=1, overwrite=True)
    texts = [read_lines(f"{corpus['train']}.{lang}") for lang in ("en", "de")]
    filled = [pair for pair in zip(*texts, strict=True) if all(pair)]
    assert list(zip(*drawn[PAIRS], strict=True)) == filled
    part = list(zip(*drawn[60], strict=True))
    assert 57 <= len(part) <= 60
    places = [filled.index(pair) for pair in part]
    assert places == sorted(set(places))
    for start in range(0, PAIRS, 30):
        assert 10 <= sum(start <= place < start + 30 for place in places) <= 20
    again = dict(drawn)
    prepare(corpus, "en-de", tmp_path / "data", vocab_size=SIZE, sample=60, workers=1, overwrite=True)
    assert drawn == again


def test_numbers_below_one_are_refused_together(corpus: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        prepare(corpus, "en-de", tmp_path / "data", sample=0, shards=0, workers=-1)
    assert [problem.split(",")[0] for problem in error.value.problems] == [
        "`--sample` must be at least 1",
        "`--shards` must be at least 1",
        "`--workers` must be at least 1",
    ]


def test_the_command_prints_what_to_train_on(
    corpus: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefixes = [word for split, prefix in corpus.items() for word in (f"--{split}", prefix)]
    flags = ["--langs", "en-de", "--vocab-size", str(SIZE), "--shards", "2", "--output", str(tmp_path / "data")]
    assert cli.main(["prepare", *prefixes, *flags]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last == f"{tmp_path}/data/shard-00:{tmp_path}/data/shard-01"


def test_the_command_reports_a_failure_in_a_line(
    corpus: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(preparation, "make_shard", full)
    prefixes = [word for split, prefix in corpus.items() for word in (f"--{split}", prefix)]
    flags = ["--langs", "en-de", "--vocab-size", str(SIZE), "--output", str(tmp_path / "data")]
    assert cli.main(["prepare", *prefixes, *flags]) == 1
    assert capsys.readouterr().err == "owf prepare: [Errno 28] No space left on device: 'somewhere'\n"
