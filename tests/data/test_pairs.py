"""Parallel text copied as a stream: every line checked, both files complete or not there."""

import gzip
import json
import tracemalloc

import pytest

from owf_fairseq import cli
from owf_fairseq.data import pairs
from owf_fairseq.data.pairs import Rules, copy_pairs


def write(folder, name, source, target):
    """Writes the two sides of a corpus, given as bytes."""
    paths = (folder / f"{name}.en", folder / f"{name}.de")
    for path, data in zip(paths, (source, target), strict=True):
        path.write_bytes(data)
    return paths


@pytest.fixture
def outputs(tmp_path):
    return (tmp_path / "out/train.en", tmp_path / "out/train.de")


def test_several_corpora_plain_and_gzipped_follow_each_other(tmp_path, outputs):
    first = write(tmp_path, "first", b"one\ntwo\n", b"eins\nzwei")
    second = write(tmp_path, "second", gzip.compress(b"\xef\xbb\xbfthree\r\n"), gzip.compress(b"drei\n"))
    copied = copy_pairs([first, second], outputs)
    assert (copied.read, copied.written) == (3, 3)
    assert outputs[0].read_bytes() == b"one\ntwo\nthree\n"
    assert outputs[1].read_bytes() == b"eins\nzwei\ndrei\n"


def test_only_lf_separates_lines(tmp_path, outputs):
    odd = "a\u2028b\u0085c\x0bd\x0ce\rf\x1cg\n".encode()
    copied = copy_pairs([write(tmp_path, "odd", odd, b"a\n")], outputs)
    assert copied.written == 1
    assert outputs[0].read_bytes() == odd


def test_empty_and_long_pairs_are_left_out_on_both_sides(tmp_path, outputs):
    corpus = write(
        tmp_path, "c", b"a\n\x00\nb\nc c c c\nd\n\ne\n", "A\nX\n \u3000\u2581\nC\nD D D D\nY\nE E E\n".encode()
    )
    copied = copy_pairs([corpus], outputs, Rules(drop_empty=True, max_words=3))
    assert outputs[0].read_bytes() == b"a\ne\n"
    assert outputs[1].read_bytes() == b"A\nE E E\n"
    assert (copied.read, copied.empty, copied.long) == (7, 3, 2)
    copy_pairs([corpus], outputs, overwrite=True)
    assert outputs[1].read_bytes() == corpus[1].read_bytes()


def test_the_same_again_is_done_and_other_rules_are_refused(tmp_path, outputs, capsys):
    corpus = write(tmp_path, "c", b"a\nb\n", b"A\nB\n")
    copy_pairs([corpus], outputs)
    assert copy_pairs([corpus], outputs) is None
    assert capsys.readouterr().err.endswith(
        f"{outputs[0]} and {outputs[1]}: made before with the same settings and inputs\n"
    )
    with pytest.raises(pairs.InputError, match="other settings .*--limit. not given, now 1.*--overwrite"):
        copy_pairs([corpus], outputs, Rules(limit=1))
    corpus[0].write_bytes(b"a\nc\n")
    assert copy_pairs([corpus], outputs).written == 2
    assert outputs[0].read_bytes() == b"a\nc\n"
    outputs[1].unlink()
    assert copy_pairs([corpus], outputs).written == 2


def test_one_file_for_both_sides_is_refused_through_links_too(tmp_path):
    corpus = write(tmp_path, "c", b"a\n", b"A\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with pytest.raises(pairs.InputError, match="are one file"):
        copy_pairs([corpus], (tmp_path / "folder" / "x", tmp_path / "link" / "x"))
    assert list((tmp_path / "folder").iterdir()) == []


def test_the_limit_counts_what_is_written_and_spares_the_rest(tmp_path, outputs):
    corpus = write(tmp_path, "c", b"\na\nb\n\xff\n", b"X\nA\nB\nC\n")
    copy_pairs([corpus], outputs, Rules(limit=2, drop_empty=True))
    assert outputs[0].read_bytes() == b"a\nb\n"


def test_the_number_of_pairs_is_checked_beyond_the_limit(tmp_path, outputs):
    corpus = write(tmp_path, "c", b"a\nb\nc\n", b"A\nB\nC\n")
    copy_pairs([corpus], outputs, Rules(limit=2, lines=3))
    assert outputs[0].read_bytes() == b"a\nb\n"
    with pytest.raises(pairs.InputError, match="have 3 pairs, but must have 4: they are not complete"):
        copy_pairs([corpus], outputs, Rules(limit=2, lines=4), overwrite=True)
    assert outputs[0].read_bytes() == b"a\nb\n"  # what was there stays


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        (b"a\nb\n", b"A\nB\nC\n", "c.en has 2 lines, but {folder}/c.de has 3"),
        (b"a\nb\xe4\n", b"A\nB\n", "c.en, line 2: not UTF-8 (byte 2 is 0xe4)"),
        (gzip.compress(b"a\n" * 50_000)[:-20], b"A\n" * 50_000, "c.en, after line "),
        (gzip.compress(b"a\nb\n")[:-4] + b"\0\0\0\1", b"A\nB\n", "c.en, after line 2: the gzipped data is damaged"),
        (b"", b"", "no pair of sentences"),
    ],
    ids=["misaligned", "not UTF-8", "cut off", "damaged", "empty"],
)
def test_faulty_text_is_refused_and_nothing_is_written(source, target, problem, tmp_path, outputs, capsys):
    paths = [str(path) for path in write(tmp_path, "c", source, target)]
    assert cli.main(["pairs", "--input", *paths, "--output", *map(str, outputs)]) == 2
    assert problem.format(folder=tmp_path) in capsys.readouterr().err
    assert not outputs[0].parent.exists() or list(outputs[0].parent.iterdir()) == []


def test_an_input_that_cannot_be_read_is_named(tmp_path, outputs, monkeypatch):
    corpus = write(tmp_path, "c", b"a\n", b"A\n")

    def broken(file, at_start):
        raise OSError(5, "Input/output error")
        yield

    monkeypatch.setattr(pairs, "without_ends", broken)
    with pytest.raises(pairs.InputError, match=r"c\.en can't be read: Input/output error"):
        copy_pairs([corpus], outputs)


def test_all_problems_of_the_command_line_are_told_at_once(tmp_path, capsys):
    paths = [str(path) for path in write(tmp_path, "c", b"a\n", b"A\n")]
    missing = str(tmp_path / "missing.de")
    assert cli.main(["pairs", "--input", paths[0], missing, "--output", *paths, "--limit", "0"]) == 2
    errors = capsys.readouterr().err
    assert "`--limit` must be at least 1" in errors
    assert f"`--input` {missing} is not a file" in errors
    assert f"`--output` {paths[0]} is the input" in errors
    assert f"`--output` {paths[1]} exists" in errors
    assert cli.main(["pairs", "--input", *paths, "--output", missing, missing]) == 2
    assert "are one file: each output needs a file of its own" in capsys.readouterr().err


def test_memory_does_not_grow_with_the_text(tmp_path, outputs):
    corpus = write(tmp_path, "c", b"word " * 20 + b"\n", b"Wort " * 20 + b"\n")
    for path in corpus:
        path.write_bytes(path.read_bytes() * 50_000)
    tracemalloc.start()
    assert copy_pairs([corpus], outputs, Rules(max_words=100)).written == 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outputs[0].stat().st_size > 5e6
    assert peak < 1e6


def test_counts_of_each_corpus(tmp_path, outputs, capsys):
    first = write(tmp_path, "first", b"a\n\nb b b\nc\n", b"A\nX\nB\nC\n")
    second = write(tmp_path, "second", b"d\ne\n", b"D\nE\n")
    third = write(tmp_path, "third", b"f\n", b"F\n")
    words = [word for corpus in (first, second, third) for word in ("--input", *map(str, corpus))]
    command = ["pairs", *words, "--output", *map(str, outputs), "--json", str(tmp_path / "counts.json")]
    command += ["--drop-empty", "--max-words", "2", "--limit", "3"]
    assert cli.main(command) == 0
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert [counts[name] for name in ("read", "written", "empty", "long")] == [5, 3, 1, 1]
    found = [[corpus[name] for name in ("source", "read", "written", "empty", "long")] for corpus in counts["corpora"]]
    assert found == [[str(first[0]), 4, 2, 1, 1], [str(second[0]), 1, 1, 0, 0], [str(third[0]), 0, 0, 0, 0]]
    assert cli.main(command) == 0
    assert "made before" in capsys.readouterr().err
    (tmp_path / "counts.json").write_text("mine")
    assert cli.main(command) == 2
    assert (tmp_path / "counts.json").read_text() == "mine"
