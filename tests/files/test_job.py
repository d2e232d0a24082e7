"""What was made before is not made again, and what was made otherwise is not replaced without a word."""

import json
import os
from pathlib import Path

import pytest

from owf_fairseq.files.folders import output_folder
from owf_fairseq.files.job import Job, OutputFile


def touch(path, later=10):
    """Gives a file another time."""
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + later))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in" / "text"
    path.parent.mkdir()
    path.write_text("a\n")
    return path


def job(source, output, beam=5, **how):
    return Job("owf one", {"--beam": beam}, {"--input": [source]}, [OutputFile("--output", output)], **how)


def make(source, output, **how):
    """What a command does."""
    one = job(source, output, **how)
    if one.is_done():
        return "done"
    problems = one.problems()
    if problems:
        return problems[0]
    output.write_text("made")
    one.note()
    return "made"


def test_the_same_again_is_done(source, tmp_path, capsys):
    output = tmp_path / "out"
    assert [make(source, output), make(source, output)] == ["made", "done"]
    assert capsys.readouterr().err == f"owf one: {output}: made before with the same settings and inputs\n"
    assert make(source, output, overwrite=True) == "made"
    touch(source)
    assert [make(source, output), make(source, output)] == ["made", "done"]
    source.write_text("longer\n")
    assert make(source, output) == "made"


def test_it_is_done_from_another_folder_and_after_a_move(source, tmp_path, monkeypatch):
    output = tmp_path / "out"
    assert make(source, output) == "made"
    monkeypatch.chdir(source.parent)
    assert make(Path("text"), Path("../out")) == "done"
    (tmp_path / "moved").mkdir()
    for name in ("in", "out", ".out.owf.json"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert make(tmp_path / "moved/in/text", tmp_path / "moved/out") == "done"


def test_other_settings_are_refused_and_named(source, tmp_path):
    output = tmp_path / "out"
    make(source, output)
    assert make(source, output, beam=4) == (
        f"`--output` {output} was made with other settings (`--beam` 5, now 4): name another file, or replace it with "
        "`--overwrite`"
    )
    other = tmp_path / "other"
    other.write_text("b\n")
    assert "(`--input` in/text, now other)" in make(other, output)
    assert output.read_text() == "made"
    assert make(source, output, beam=4, overwrite=True) == "made"
    assert make(source, output, beam=4) == "done"


def test_what_another_hand_made_or_changed_is_left_alone(source, tmp_path):
    output = tmp_path / "out"
    output.write_text("mine")
    assert "exists: name another file, or replace it with `--overwrite`" in make(source, output)
    output.unlink()
    make(source, output)
    output.write_text("corrected by hand")
    assert "exists: name another file" in make(source, output)
    assert "exists: name another file" in make(source, output, beam=4)
    assert output.read_text() == "corrected by hand"


def test_a_damaged_record_is_none(source, tmp_path):
    output = tmp_path / "out"
    make(source, output)
    for text in ("", "[1]", '{"command": "owf one"}', '{"command": 1, "settings": [], "inputs": 2}', "\0"):
        (tmp_path / ".out.owf.json").write_text(text)
        assert "exists: name another file" in make(source, output)


def test_what_came_through_a_pipe_is_made_each_time(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    output = tmp_path / "out"
    assert make(tmp_path / "pipe", output) == "made"
    assert "exists" in make(tmp_path / "pipe", output)
    assert not (tmp_path / ".out.owf.json").exists()


def test_a_folder_says_it_in_its_manifest(source, tmp_path):
    def make(beam=5, overwrite=False):
        one = Job("owf one", {"--beam": beam}, {"--input": [source]}, folder=tmp_path / "out", overwrite=overwrite)
        if one.is_done():
            return one.result()
        problems = one.problems()
        if problems:
            return problems[0]
        with output_folder(tmp_path / "out", "owf one", {**one.record(tmp_path / "out"), "result": beam}) as folder:
            (folder / "file").write_text("x")
        return "made"

    assert [make(), make()] == ["made", 5]
    assert "made with other settings (`--beam` 5, now 4): name another folder" in make(4)
    assert make(4, overwrite=True) == "made"
    touch(source)
    assert make(4) == "made"
    (tmp_path / "out" / "mine").write_text("x")
    assert "holds files that `owf one` didn't make (mine)" in make(4)
    assert json.loads((tmp_path / "out" / ".owf.json").read_text())["files"] == ["file"]


def test_no_output_is_an_input_or_another_output(source, tmp_path):
    (tmp_path / "link").symlink_to(source.parent)
    for path in (source, tmp_path / "link" / "text"):
        (problem,) = job(source, path, overwrite=True).problems()
        assert "is the input" in problem
    files = [OutputFile("--output", source.parent / "new"), OutputFile("--json", tmp_path / "link" / "new")]
    (problem,) = Job("owf one", {}, {}, files).problems()
    assert "are one file" in problem
    with output_folder(tmp_path / "made", "owf one") as folder:
        (folder / "file").write_text("x")
    again = Job("owf one", {}, {"--input": [tmp_path / "made" / "file"]}, folder=tmp_path / "made", overwrite=True)
    (problem,) = again.problems()
    assert "holds the input" in problem
    inside = [OutputFile("--json", tmp_path / "made" / "a.json")]
    assert "is in the folder of `--output`" in Job("owf one", {}, {}, inside, tmp_path / "made").problems()[0]


def test_what_is_read_later_counts_too(source, tmp_path):
    model = tmp_path / "model"
    model.write_text("m")
    output = tmp_path / "out"
    one = job(source, output)
    one.reads([model])
    output.write_text("made")
    one.note()
    assert job(source, output).is_done()
    touch(model)
    assert not job(source, output).is_done()
