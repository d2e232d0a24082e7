"""What a command may write, and what it leaves alone."""

import json
import os
import threading

import pytest

from owf_fairseq.errors import InputError
from owf_fairseq.files.outputs import check_output_file, write_output


def test_what_is_not_there_and_what_is_no_file_may_be_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (None, tmp_path / "new", tmp_path / "new" / "folders" / "file", "/dev/null", tmp_path / "pipe"):
        assert check_output_file("--json", path, False) == []


def test_a_file_needs_overwrite_unless_the_command_made_it(tmp_path):
    path = tmp_path / "file"
    for content, kind, allowed in [
        ("text", "report", False),
        (json.dumps({"kind": "report"}), "report", True),
        (json.dumps({"kind": "evaluation"}), "report", False),
        (json.dumps(["report"]), "report", False),
        (json.dumps({"other": 1}), None, False),
    ]:
        path.write_text(content)
        problems = check_output_file("--json", path, False, kind=kind)
        assert bool(problems) is not allowed, content
        assert all("`--json`" in problem and "`--overwrite`" in problem for problem in problems)
        assert check_output_file("--json", path, True, kind=kind) == []


def test_folders_and_inputs_are_never_replaced(tmp_path):
    (tmp_path / "input").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "input")
    assert "is a folder" in check_output_file("--output", tmp_path, True)[0]
    for name in ("input", "link"):
        (problem,) = check_output_file("--output", tmp_path / name, True, inputs=[None, tmp_path / "input"])
        assert "is the input" in problem
    (problem,) = check_output_file("--output", tmp_path / "input" / "below", False)
    assert "can't be written" in problem


def test_writing(tmp_path):
    write_output("--output", tmp_path / "new" / "file", ["ä", "b"])
    assert (tmp_path / "new" / "file").read_bytes() == "ä\nb\n".encode()
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_output("--output", tmp_path / "pipe", ["a"])
    reader.join(10)
    assert read == ["a\n"]
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(InputError, match="`--output` /dev/full can't be written: No space left"):
        write_output("--output", "/dev/full", ["x" * 100_000])


def test_nothing_is_left_when_the_work_fails(tmp_path):
    (tmp_path / "file").write_text("old")

    def lines():
        yield "half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_output("--output", tmp_path / "file", lines())
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
