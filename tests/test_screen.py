"""What a failing screen may not do: lose files, end a command by a character, or show a traceback."""

import contextlib
import io
import json
import os
import sys

import pytest
from evaluation_for_tests import sentences, spoil, write

from owf_fairseq import cli
from owf_fairseq.screen import tolerant_streams

DAGGER = "\u2020"


@pytest.fixture
def compared(tmp_path):
    """Arguments of an evaluation in which a system is significantly better, and the JSON that it writes."""
    reference = sentences(60)
    files = [write(tmp_path / name, spoil(reference, share, seed=2)) for name, share in (("a.de", 0.6), ("b.de", 0.1))]
    json_file = tmp_path / "scores.json"
    flags = ["--ref", write(tmp_path / "ref.de", reference), "--metrics", "bleu", "--baseline", "a"]
    return ["evaluate", *files, *flags, "--samples", "100", "--json", str(json_file)], json_file


def run(arguments, stdout, stderr=None):
    """Status, with other streams."""
    error = stderr or io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(error):
        return cli.main(arguments), error.getvalue() if stderr is None else ""


@pytest.mark.parametrize("encoding", ["iso-8859-1", "ascii", "utf-8"])
def test_a_character_that_the_terminal_lacks_ends_nothing(compared, encoding):
    arguments, json_file = compared
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding=encoding)
    status, errors = run(arguments, stream)
    assert (status, errors) == (0, "")
    assert (DAGGER if encoding == "utf-8" else "\\u2020") in printed.getvalue().decode(encoding)
    assert json.loads(json_file.read_text())["kind"] == "evaluation"


def test_a_full_device_loses_no_file(compared):
    arguments, json_file = compared
    with open("/dev/full", "w") as full:
        status, errors = run(arguments, full)
    assert (status, errors) == (1, "owf evaluate: error: standard output can't be written: No space left on device\n")
    assert json.loads(json_file.read_text())["kind"] == "evaluation"


def test_a_closed_pipe_loses_no_file(compared):
    arguments, json_file = compared
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        assert run(arguments, closed) == (1, "")
    assert json.loads(json_file.read_text())["kind"] == "evaluation"


@pytest.mark.parametrize("command", ["report", "benchmark"])
@pytest.mark.parametrize("device", ["/dev/full", os.devnull])
def test_other_commands_write_their_files_too(command, device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if command == "report":
        reference = sentences(5)
        files = [write(tmp_path / f"{arch}.de", reference) for arch in ("owf_big", "owf_big_one_wide_ffn")]
        flags = ["--ref", files[0], "--metrics", "bleu", "--json", "scores.json"]
        assert run(["evaluate", *files, *flags], io.StringIO())[0] == 0
        arguments = ["report", "scores.json", "--output", "table.md", "--json", "table.json"]
    else:
        arguments = ["benchmark", "--predict", "owf_tiny", "--json", "table.json"]
    with open(device, "w", encoding="ascii") as stream:
        status, errors = run(arguments, stream)
    assert status == (1 if device == "/dev/full" else 0), errors
    assert json.loads((tmp_path / "table.json").read_text())
    assert (tmp_path / "table.md").exists() == (command == "report")


@pytest.mark.parametrize("arguments", [["params", "--list"], ["configs"]])
def test_a_full_device_is_a_sentence_everywhere(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("/dev/full", "w") as full:
        status, errors = run(arguments, full)
    assert status == 1
    assert "standard output can't be written: No space left on device" in errors


class Full(io.StringIO):
    """A device with no room, from the first character on."""

    def write(self, text):
        raise OSError(28, "No space left on device")


def test_warnings_that_nobody_can_read_end_nothing(compared, tmp_path):
    arguments, json_file = compared
    write(tmp_path / "b.de", [""] * 60)  # which is warned of
    assert run(arguments, io.StringIO(), Full())[0] == 0
    assert json_file.exists()


def test_streams_that_are_closed_from_the_start(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["params", "--list"]) == 0
    assert sys.stdout is None


def test_bytes_stay_what_they_are():
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    with contextlib.redirect_stdout(stream), tolerant_streams():
        sys.stdout.buffer.write("Größe †\n".encode())
        sys.stdout.buffer.flush()
    assert written.getvalue() == "Größe †\n".encode()


def test_an_error_that_is_none_of_the_screens_is_not_hidden(monkeypatch):
    def fails(*arguments):
        raise OSError("something else")

    monkeypatch.setattr("owf_fairseq.cli.params.list_archs", fails)
    with pytest.raises(OSError, match="something else"):
        cli.main(["params", "--list"])
