"""Corpora from servers that break off or are gone, to the training text and what tables say of it; mtdata unpacks."""

import gzip
import json
import tarfile

import pytest
from mtdata.entry import Entry
from scripts_for_tests import Scripts, lines_of, load_script, parse
from server_for_tests import QUICK, serving

from owf_fairseq import cli
from owf_fairseq.data import corpora
from owf_fairseq.errors import InputError

NAMES = ["Statmt-news-1-deu-eng", "OPUS-talks-1-eng-deu", "Tilde-gone-1-deu-eng"]


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def world(server, tmp_path, monkeypatch):
    """Three corpora that mtdata knows, one in a table and one in an archive; the server of the third is gone."""
    news = "".join(f"Satz {n}.\tSentence {n}.\n" for n in range(2000)) + "\tempty\n"
    server.files["/news.de-en.tsv.gz"] = gzip.compress(news.encode())
    for lang in ("de", "en"):
        (tmp_path / f"talks.{lang}").write_text("".join(f"{lang} talk {n}\n" for n in range(30)))
    with tarfile.open(tmp_path / "talks.tgz", "w:gz") as archive:
        for lang in ("de", "en"):
            archive.add(tmp_path / f"talks.{lang}", f"talks.{lang}")
    server.files["/talks.tgz"] = (tmp_path / "talks.tgz").read_bytes()
    entries = [
        Entry(NAMES[0], server.url("/news.de-en.tsv.gz")),
        Entry(NAMES[1], server.url("/talks.tgz"), ext="tgz", in_ext="txt", in_paths=["talks.en", "talks.de"]),
        Entry(NAMES[2], "http://127.0.0.1:1/gone.tsv"),
    ]
    (tmp_path / "corpora.tsv").write_text(
        "id\tpairs\n" + "".join(f"{n}\t{p}\n" for n, p in zip(NAMES, (2000, 60, 500), strict=True))
    )
    monkeypatch.setattr(corpora, "find_entries", lambda names: {str(e.did): e for e in entries if str(e.did) in names})
    monkeypatch.setattr(corpora, "PATIENCE", QUICK)
    monkeypatch.setattr("mtdata.data.INDEX", {entry.did: entry for entry in entries})
    monkeypatch.setenv("MTDATA", str(tmp_path / "cache"))
    return server


@pytest.fixture
def call(world, tmp_path):
    """The script, with its commands in this process."""
    script = load_script("fetch_corpora.py")

    def run(command):
        if command[0] == "owf":
            return cli.main(list(command[1:])) == 0
        from mtdata.data import Dataset

        args = parse(command)
        wanted = {"train": args.train_dids}
        Dataset.prepare(
            args.langs,
            args.out_dir,
            wanted,
            tmp_path / "cache",
            compress=args.compress,
            fail_on_error=args.fail_on_error,
        )
        return True

    def call(*words):
        outputs = [str(tmp_path / "run/raw" / f"train.{lang}") for lang in ("en", "de")]
        flags = ["--corpora", tmp_path / "corpora.tsv", "--langs", "eng-deu", "--run", tmp_path / "run", *words]
        return script.main([*map(str, flags), "--output", *outputs, "--drop-empty"], run)

    return call


def test_a_dead_address_holds_up_its_own_corpus_only(call, world, tmp_path, capsys):
    """Then the others are there, and the text goes on without it."""
    half = len(world.files["/news.de-en.tsv.gz"]) // 2
    world.faults["/news.de-en.tsv.gz"] = [("cut", half), ("slow", 10, 0.1)]
    assert call() == 1
    (problem,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("fetch_corpora"))
    assert f"{NAMES[2]} can't be fetched (http://127.0.0.1:1/gone.tsv: " in problem
    assert problem.endswith(f"`--without {NAMES[2]}`")
    assert not (tmp_path / "run/raw").exists()
    assert [asked for asked in world.asked if "news" in asked[0]][1] == ("/news.de-en.tsv.gz", f"bytes={half}-")
    world.asked.clear()
    assert call("--without", NAMES[2]) == 0
    assert world.asked == []  # all from the cache, by mtdata as well
    text = [lines_of(tmp_path / f"run/raw/train.{lang}") for lang in ("en", "de")]
    assert (text[0][1], text[1][1], len(text[0])) == ("Sentence 1.", "Satz 1.", 2030)
    assert (text[0][-1], text[1][-1]) == ("en talk 29", "de talk 29")
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["all", "2,560", "2,030", "2,030"] in table
    assert [NAMES[2], "500", "left", "out", "0"] in table
    record = json.loads((tmp_path / "run/raw/corpora.json").read_text())
    assert record["corpora"][0] == {"name": NAMES[0], "expected": 2000, "found": 2000, "kept": 2000}
    assert record["corpora"][2]["found"] is None
    assert lines_of(tmp_path / "run/raw/notes.txt") == record["notes"] == corpora.read_notes(tmp_path / "run/raw")
    assert record["notes"] == [
        f"the training text lacks {NAMES[2]} (about 500 of 2,560 pairs): left out with `--without`",
        f"{NAMES[1]} has 30 pairs, but about 60 were expected",
    ]
    assert call("--without", "Tilde-*") == 0
    assert "made before" in capsys.readouterr().err


def test_a_later_call_goes_on(call, world, tmp_path):
    world.faults["/talks.tgz"] = [("cut", 200), *[("shut",)] * 3]
    assert call("--without", NAMES[2]) == 1
    world.asked.clear()
    assert call("--without", NAMES[2], "--limit", "2005") == 0
    assert world.asked == [("/talks.tgz", "bytes=200-")]
    assert len(lines_of(tmp_path / "run/raw/train.en")) == 2005
    (note,) = corpora.read_notes(tmp_path / "run/raw")  # of a text that was cut, numbers say nothing
    assert "lacks" in note


def test_what_cannot_be_used_is_refused(call, tmp_path, capsys):
    for words, problem in (
        (["--without", "Tilde-other"], f"`--without` must be one of {', '.join(NAMES)}, but is 'Tilde-other'"),
        (["--without", "*"], "`--without` * leaves out every corpus"),
        (["--jobs", "0"], "`--jobs` must be at least 1, but is 0"),
    ):
        assert call(*words) == 2
        assert problem in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_corpus_that_mtdata_does_not_know(monkeypatch):
    monkeypatch.setattr("mtdata.index.Index.get_instance", dict)
    with pytest.raises(InputError, match="mtdata knows no corpus Statmt-nothing-1-deu-eng"):
        corpora.find_entries(["Statmt-nothing-1-deu-eng"])


def test_tables_say_what_was_left_out(tmp_path):
    """The notes go to `owf report`, by the scripts and by `owf reproduce`."""
    scripts = Scripts(tmp_path)
    (scripts.run / "raw").mkdir(parents=True)
    (scripts.run / "raw/notes.txt").write_text("the text lacks A\nB has 5 pairs\n")
    for dataset in ("wmt22_en_de", "wmt16_en_ro", "multilingual"):
        report = parse(scripts.commands(f"{dataset}/evaluate.sh", "big")[-1])
        assert report.note == ["the text lacks A", "B has 5 pairs"]
    (scripts.run / "raw/notes.txt").unlink()
    assert parse(scripts.commands("wmt22_en_de/evaluate.sh", "big")[-1]).note == []


def test_the_notes_go_with_the_text(tmp_path):
    scripts = Scripts(tmp_path)
    (tmp_path / "local").mkdir()
    for name in ("notes.txt", "corpora.json"):
        (tmp_path / "local" / name).write_text(f"{name}\n")
    scripts.commands("wmt22_en_de/download.sh", LOCAL=tmp_path / "local")
    assert (scripts.run / "raw/notes.txt").read_text() == "notes.txt\n"
    assert (scripts.run / "raw/corpora.json").read_text() == "corpora.json\n"
