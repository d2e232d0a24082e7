"""`owf benchmark`: the files that it writes, and what is left when they can't be written."""

import json
import os

import pytest

from owf_fairseq import cli
from owf_fairseq.speed import plot as speed_plot


def run(capsys, *arguments, status=0):
    assert cli.main(["benchmark", "--predict", "owf_tiny", "owf_tiny_no_dec", *map(str, arguments)]) == status
    return capsys.readouterr()


def test_json_of_the_same_command_is_replaced(capsys, tmp_path):
    path = tmp_path / "new" / "a.json"
    run(capsys, "--json", path)
    run(capsys, "--json", path, "--beam", "3")
    assert json.loads(path.read_text())["beam"] == 3


@pytest.mark.parametrize("text", ["a list of mine\n", '{"kind": "benchmark"}'])
def test_another_file_is_not_replaced(text, capsys, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert "exists: name another file" in run(capsys, "--json", path, status=2).err
    assert path.read_text() == text
    run(capsys, "--json", path, "--overwrite")
    assert json.loads(path.read_text())["kind"] == "prediction"


def test_a_pipe_is_written_and_stays(capsys, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        run(capsys, "--json", path, "--overwrite")
        assert path.is_fifo()
        assert json.loads(os.read(reader, 1 << 20))["kind"] == "prediction"
    finally:
        os.close(reader)


def test_tables_are_printed_although_a_file_cannot_be_written(capsys, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("owf_fairseq.files.outputs.atomic_path", full)
    captured = run(capsys, "--json", tmp_path / "a.json", status=2)
    assert "owf_tiny_no_dec" in captured.out
    assert captured.err == f"owf benchmark: error: `--json` {tmp_path / 'a.json'} can't be written: " + (
        "No space left on device\n"
    )


def test_a_plot_that_cannot_be_written(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib", reason="`pip install '.[plot]'` for the plot")
    path = tmp_path / "a.png"
    monkeypatch.setattr(speed_plot, "_draw", lambda *_: path.mkdir(exist_ok=True))
    captured = run(capsys, "--plot", path, "--batch-sizes", "1,2", status=2)
    assert "owf_tiny_no_dec" in captured.out
    assert f"`--plot` {path} can't be written" in captured.err
