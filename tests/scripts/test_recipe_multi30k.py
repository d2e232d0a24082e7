"""scripts/multi30k from end to end, on the real text where it is, with small models and few updates."""

import gzip
import json
import shutil

import pytest
from scripts_for_tests import SHARED_DATA, Scripts, lines_of

DATA = SHARED_DATA / "multi30k"
NAMES = ("small", "small_one_wide_ffn")
QUICK = "--cpu --max-update 2 --total-num-update 100 --validate-interval-updates 2 --max-tokens 500".split()
CURL = f"""#!/bin/bash
while [ $# -gt 1 ]; do [ "$1" = --output ] && output=$2; shift; done
case $1 in
  https://*/test_2016_flickr.de.gz) [ -e "$CONNECTED" ] || {{ head -c 100 "{DATA}/${{1##*/}}" >"$output"; exit 18; }} ;;
  https://*) ;;
  *) exit 1 ;;
esac
cp "{DATA}/${{1##*/}}" "$output"
"""

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no Multi30k in {DATA}")


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


def corpus(name, lang):
    return gzip.decompress((DATA / f"{name}.{lang}.gz").read_bytes()).decode().removesuffix("\n").split("\n")


def test_from_the_text_to_the_table(scripts):
    """Real results of each step; done a second time, a step does nothing; with other settings it is done or refused."""
    run = scripts.folder / "run"

    def step(name, *arguments):
        """Runs a script; returns which subcommands of ``owf`` it called."""
        done = scripts.succeed(f"multi30k/{name}.sh", *arguments, "--output", "run")
        return done, [command[0] for command in scripts.commands]

    local = ["--local", DATA, "--limit", "500"]
    assert step("download", *local)[1] == ["pairs"] * 3
    for split, name, pairs in (("train", "train", 500), ("valid", "val", 1014), ("test", "test_2016_flickr", 1000)):
        for lang in ("en", "de"):
            assert lines_of(run / f"raw/{split}.{lang}") == corpus(name, lang)[:pairs]
    assert step("download", *local)[1] == []
    other = scripts.run("multi30k/download.sh", "--local", DATA, "--output", "run")
    assert (other.returncode, scripts.commands) == (2, [])
    assert "run was begun with other settings" in other.stderr

    assert step("preprocess", "--vocab-size", "300")[1] == ["prepare"]
    assert len(lines_of(run / "data/dict.en.txt")) == 300 - 4
    assert step("preprocess", "--vocab-size", "300")[1] == []

    assert step("train", *NAMES, *QUICK)[1] == ["train", "train"]
    assert step("train", *NAMES, *QUICK)[1] == []
    first = (run / "small/checkpoint_best.pt").stat().st_mtime_ns
    assert step("train", "small", *QUICK, "--max-update", "4")[1] == ["train"]  # it goes on
    assert (run / "small/checkpoint_best.pt").stat().st_mtime_ns > first

    search = "--beam 1 --max-len-a 0 --max-len-b 5 --cpu".split()
    assert step("generate", *NAMES, *search)[1] == ["translate", "translate"]
    assert step("generate", *NAMES, *search)[1] == []
    for name in NAMES:
        assert len(lines_of(run / name / "test.de")) == 1000
    table = step("evaluate", *NAMES)[0].stdout
    scores = json.loads((run / "scores.json").read_text())
    assert [system["name"] for system in scores["systems"]] == list(NAMES)
    assert (run / "table.md").read_text() in table

    assert step("generate", "small", "--limit", "7", *search)[1] == ["translate"]
    assert len(lines_of(run / "small/test.de")) == 7
    step("evaluate", "small", "--limit", "7", "--speed", "1", "--checkpoint", "checkpoint_last.pt")
    assert scripts.commands[1][:2] == ["benchmark", f"small={run}/small/checkpoint_last.pt"]
    assert json.loads((run / "scores.json").read_text())["segments"] == 7


def test_what_is_fetched_is_whole(scripts):
    """A connection that breaks leaves nothing behind that looks complete; the next call goes on."""
    scripts.add("curl", CURL)
    connected = scripts.folder / "connected"
    how = {"env": {"CONNECTED": str(connected)}}
    broken = scripts.run("multi30k/download.sh", "--output", "run", **how)
    assert broken.returncode == 1
    assert "test_2016_flickr.de.gz can't be fetched" in broken.stderr
    assert not (scripts.folder / "run/download/test_2016_flickr.de.gz").exists()
    assert not (scripts.folder / "run/raw/test.en").exists()
    assert len(scripts.commands) == 2
    connected.touch()
    scripts.succeed("multi30k/download.sh", "--output", "run", **how)
    assert len(scripts.commands) == 1
    assert lines_of(scripts.folder / "run/raw/test.de") == corpus("test_2016_flickr", "de")
    assert len(lines_of(scripts.folder / "run/raw/train.en")) == 29_000


@pytest.mark.parametrize("fault", ["cut off", "not UTF-8", "misaligned", "incomplete", "missing"])
def test_damaged_text_is_refused_and_can_be_replaced(fault, scripts):
    local = scripts.folder / "local"
    shutil.copytree(DATA, local)
    faulty = local / "val.de.gz"
    lines = gzip.decompress(faulty.read_bytes()).split(b"\n")
    if fault == "cut off":
        problem = "val.de.gz, after line"
        faulty.write_bytes(faulty.read_bytes()[:-100])
    elif fault == "not UTF-8":
        problem = "val.de.gz, line 3: not UTF-8"
        lines[2] = "München".encode("latin-1")
        faulty.write_bytes(gzip.compress(b"\n".join(lines)))
    elif fault == "misaligned":
        problem = "val.en.gz has 1014 lines, but "
        faulty.write_bytes(gzip.compress(b"\n".join(lines[1:])))
    elif fault == "incomplete":
        problem = "have 1013 pairs, but must have 1014"
        for lang in ("en", "de"):
            path = local / f"val.{lang}.gz"
            path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).split(b"\n", 1)[1]))
    else:
        problem = "val.de nor"
        faulty.unlink()
    nowhere = scripts.run("multi30k/download.sh", "--local", "nowhere", "--output", "run")
    assert nowhere.returncode == 2
    assert "neither nowhere/train.en nor nowhere/train.en.gz is there" in nowhere.stderr
    call = ["multi30k/download.sh", "--local", local, "--limit", "9", "--output", "run"]
    refused = scripts.run(*call)
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert sorted(path.name for path in (scripts.folder / "run/raw").iterdir()) == ["train.de", "train.en"]
    shutil.copytree(DATA, local, dirs_exist_ok=True)
    scripts.succeed(*call)
    assert [command[-1] for command in scripts.commands] == ["1014", "1000"]
    assert lines_of(scripts.folder / "run/raw/valid.de") == corpus("val", "de")
