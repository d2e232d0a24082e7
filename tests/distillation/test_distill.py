"""`owf distill`: pairs line by line, what is picked and left out, interruptions, and that `owf prepare` takes it."""

import itertools
import json
import math

import pytest
from fairseq_for_tests import text_sentences

from owf_fairseq import cli
from owf_fairseq.decoding import backends
from owf_fairseq.decoding.search import Hypothesis
from owf_fairseq.files.lines import read_lines

LINES = text_sentences(40, seed=5)


class Teacher:
    """Translates a piece to itself, in capitals as the second best; what it is to do with some sentences is given."""

    name, precision, device_name = "teacher", "float32", "CPU"
    max_source_length, max_target_length = 60, 100

    def __init__(self, segmentation, files=(), odd=()):
        self._segmentation, self._files, self.odd = segmentation, list(files), dict(odd)
        self.batches = []

    def segmentation(self, other=None):
        return self._segmentation

    def files(self, other=None):
        return self._files

    def search(self, batch, options):
        self.batches.append(len(batch))
        found = []
        for pieces in batch:
            text = self._segmentation.decode(" ".join(pieces))
            texts = self.odd.get(text, [text.replace("the", "a"), text.replace("the", "the the")])
            encoded = [tuple(self._segmentation.encode(one).split()) for one in texts]
            found.append([Hypothesis(one, -math.log(2 + n), 0.0) for n, one in enumerate(encoded)][: options.nbest])
        return found


@pytest.fixture
def teacher(copier, monkeypatch):
    """A teacher that takes no time, in place of whatever is named."""
    made = Teacher(backends.load_backend(str(copier), cpu=True).segmentation())
    monkeypatch.setattr(backends, "load_backend", lambda *arguments, **others: made)
    return made


@pytest.fixture
def corpus(tmp_path):
    """A prefix of parallel text."""
    (tmp_path / "train.en").write_text("".join(f"{line}\n" for line in LINES))
    (tmp_path / "train.de").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path / "train"


@pytest.fixture
def owf(tmp_path, capsys, copier):
    """Runs the command; gives status, output and what it said."""

    def run(*arguments, teacher=copier, output=tmp_path / "out"):
        capsys.readouterr()
        flags = ["--langs", "en-de", "--cpu", "--workers", "1", "--output", output, *arguments]
        status = cli.main(["distill", str(teacher), *map(str, flags)])
        return (status, *capsys.readouterr())

    return run


def pairs(prefix):
    return list(zip(read_lines(f"{prefix}.en"), read_lines(f"{prefix}.de"), strict=True))


def test_the_most_probable_and_the_nearest(owf, teacher, corpus, tmp_path):
    """The references are the sources: "the the" is nearer to them than "a"."""
    assert owf("--train", corpus, "--pick", "top")[0] == 0
    assert pairs(tmp_path / "out") == [(line, line.replace("the", "a")) for line in LINES]
    status, out, _ = owf("--train", corpus, "--json", tmp_path / "report.json", output=tmp_path / "best")
    assert status == 0
    assert pairs(tmp_path / "best") == [(line, line.replace("the", "the the")) for line in LINES]
    data = json.loads((tmp_path / "report.json").read_text())
    assert (data["kind"], data["lines"], data["written"]) == ("distillation", 40, 40)
    assert data["picked"] == data["not_first"] == 40
    assert data["mean_score_of_picked"] > data["mean_score_of_first"] > 0
    assert "picked: of 40 of 40 lines another translation" in out


def test_monolingual_text_follows(owf, teacher, corpus, tmp_path):
    (tmp_path / "mono").write_text("the door.\nthe lamp.\n")
    assert owf("--train", corpus, "--monolingual", tmp_path / "mono", tmp_path / "mono")[0] == 0
    assert pairs(tmp_path / "out")[40:] == [("the door.", "a door."), ("the lamp.", "a lamp.")] * 2
    assert owf("--monolingual", tmp_path / "mono", output=tmp_path / "alone")[0] == 0
    assert pairs(tmp_path / "alone") == [("the door.", "a door."), ("the lamp.", "a lamp.")]


def test_what_is_left_out_is_counted_and_named(owf, teacher, tmp_path):
    lines = ["the door.", "", "the lamp.", "the fan.", "the lock.", "the sensor. " * 30, "the heater.", "the door."]
    odd = {
        "the lamp.": [""],
        "the fan.": ["the fan."],
        "the lock.": ["the lock and the fan and the lamp. the door."],
        "the heater.": ["the door. " * 20],
    }
    teacher.odd = odd
    (tmp_path / "mono").write_text("".join(f"{line}\n" for line in lines))
    status, out, err = owf("--monolingual", tmp_path / "mono", "--json", tmp_path / "report.json", "--max-ratio", 1)
    assert status == 0, err
    assert pairs(tmp_path / "out") == [("the door.", "a door.")] * 2
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["left_out"] == {"empty": 2, "long": 1, "unfinished": 1, "copied": 1, "length": 1}
    named = {reason: [place.split("line ")[1] for place in places] for reason, places in data["examples"].items()}
    assert named == {"empty": ["2", "3"], "long": ["6"], "unfinished": ["7"], "copied": ["4"], "length": ["5"]}
    assert f"left out: 2 with an empty side ({tmp_path}/mono, line 2; {tmp_path}/mono, line 3)" in out
    assert "2 of 8 pairs" in out


def test_nothing_is_left(owf, teacher, tmp_path):
    (tmp_path / "mono").write_text("\n\n")
    status, _, err = owf("--monolingual", tmp_path / "mono")
    assert status == 2
    assert "no pair is left of 2 lines: 2 with an empty side" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mono"]


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_an_interruption_costs_a_buffer(stop, owf, teacher, corpus, tmp_path, monkeypatch):
    """Buffers of two files; the last one of a file is not full."""
    (tmp_path / "mono").write_text("the door.\nthe lamp.\nthe fan.\n")
    arguments = ("--train", corpus, "--monolingual", tmp_path / "mono", "--buffer-size", 16, "--json", tmp_path / "a")
    assert owf(*arguments, output=tmp_path / "whole")[0] == 0
    whole = json.loads((tmp_path / "a").read_text())
    search, count = teacher.search, itertools.count(1)

    def interrupted(batch, options):
        if next(count) == stop:
            raise KeyboardInterrupt
        return search(batch, options)

    arguments = (*arguments[:-1], tmp_path / "b", "--max-tokens", 100_000)  # a batch is a buffer
    teacher.batches.clear()
    monkeypatch.setattr(teacher, "search", interrupted)
    status, _, _ = owf(*arguments)
    assert (status, (tmp_path / "out.en").exists()) == (130 if stop < 5 else 0, stop == 5)
    if stop < 5:
        with open(tmp_path / ".out.en.partial/target", "a") as file:
            file.write("half a li")  # as it may be left when the power fails
        assert owf(*arguments)[0] == 0
    assert pairs(tmp_path / "out") == pairs(tmp_path / "whole")
    assert teacher.batches == [16, 16, 8, 3]
    found = json.loads((tmp_path / "b").read_text())
    assert {**found, "mean_score_of_picked": 0} == {**whole, "mean_score_of_picked": 0}
    status, _, err = owf(*arguments)
    assert (status, teacher.batches) == (0, [16, 16, 8, 3])
    assert "made before with the same settings and inputs" in err
    assert not list(tmp_path.glob(".*.partial"))


def test_all_problems_are_told_together(owf, teacher, corpus, tmp_path):
    (tmp_path / "train.de").write_text("the door.\n")
    (tmp_path / "bad").write_bytes(b"the \xff door\n")
    status, _, err = owf(
        "--train", corpus, "--monolingual", tmp_path / "bad", tmp_path / "missing", "--max-ratio", 0, "--beam", 0
    )
    assert status == 2
    assert f"{tmp_path}/train.en has 40 lines, but {tmp_path}/train.de has 1" in err
    assert f"{tmp_path}/bad, line 1: not UTF-8" in err
    assert f"{tmp_path}/missing can't be read" in err
    assert "`--max-ratio` must be at least 1" in err
    assert "`--beam` must be at least 1" in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "name text to translate, with `--train PREFIX` or `--monolingual FILE`"),
        (("--monolingual", "MONO", "--nbest", "2"), "`--nbest` is for `--pick best` with `--train`"),
        (("--monolingual", "MONO", "--langs", "de-en"), "`--langs` de-en, but"),
        (("--monolingual", "MONO", "--langs", "en"), "`--langs` must be two different languages"),
        (("--monolingual", "MONO", "--workers", "0"), "`--workers` must be at least 1"),
    ],
)
def test_what_does_not_go_together(arguments, problem, owf, teacher, tmp_path):
    (tmp_path / "mono").write_text("the door.\n")
    status, _, err = owf(*(str(tmp_path / "mono") if one == "MONO" else one for one in arguments))
    assert status == 2
    assert problem in err


def test_other_settings_are_not_mixed(owf, teacher, corpus, tmp_path):
    assert owf("--train", corpus)[0] == 0
    status, _, err = owf("--train", corpus, "--metric", "bleu")
    assert status == 2
    assert "was made with other settings (`--metric` chrf, now bleu)" in err


@pytest.mark.parametrize("kind", ["fairseq", "ensemble", "ctranslate2"])
def test_real_teachers_and_the_students_data(kind, owf, copier, exported_copier, corpus, tmp_path, capsys):
    """The copier copies; the references do too, so that copies are kept. `owf prepare --like` takes the result."""
    teacher = exported_copier if kind == "ctranslate2" else copier
    more = [copier] if kind == "ensemble" else []
    status, _, err = owf("--train", corpus, "--pick", "top", teacher=teacher) if not more else (
        cli.main(["distill", str(copier), str(copier), "--train", str(corpus), "--pick", "top", "--langs", "en-de",
                  "--output", str(tmp_path / "out"), "--cpu"]), "", "")  # fmt: skip
    assert status == 0, err
    assert pairs(tmp_path / "out") == [(line, line) for line in LINES]
    data = copier.parent.parent / "data"
    prepare = ["prepare", "--train", str(tmp_path / "out"), "--valid", str(corpus), "--langs", "en-de"]
    assert cli.main([*prepare, "--like", str(data), "--output", str(tmp_path / "data")]) == 0
    assert (tmp_path / "data/dict.de.txt").read_bytes() == (data / "dict.de.txt").read_bytes()
    assert len(read_lines(tmp_path / "data/encoded/train.de")) == len(LINES)
