"""`owf translate` from pipes and to files: answered at once, not done again, and nothing of others replaced."""

import json
import os
import select
import shutil
import sys
import threading

import pytest
from fairseq_for_tests import TOY_SENTENCES

from owf_fairseq import cli

A, B, C = TOY_SENTENCES


def test_the_input_is_not_overwritten(copier, tmp_path, capsys):
    (tmp_path / "text").write_text(f"{A}\n")
    text = str(tmp_path / "text")
    assert cli.main(["translate", str(copier), "--cpu", "--input", text, "--output", text, "--overwrite"]) == 2
    assert (tmp_path / "text").read_text() == f"{A}\n"
    assert "is the input" in capsys.readouterr().err
    assert cli.main(["translate", str(copier), "--cpu", "--input", text, "--output", "/dev/null"]) == 0


def test_each_line_is_answered_at_once(copier, monkeypatch):
    """One line is written, and the pipe stays open."""
    (source, question), (answer, target) = os.pipe(), os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(source))
    monkeypatch.setattr(sys, "stdout", os.fdopen(target, "w"))
    command = ["translate", str(copier), "--cpu", "--buffer-size", "1"]
    status = []
    thread = threading.Thread(target=lambda: status.append(cli.main(command)), daemon=True)
    thread.start()
    for line in (A, C):
        os.write(question, f"{line}\n".encode())
        assert select.select([answer], [], [], 60)[0]
        assert os.read(answer, 1000).decode() == f"{line}\n"
    os.close(question)
    thread.join(60)
    assert status == [0]


@pytest.mark.parametrize("how", ["fifo", "/dev/fd"])
def test_input_that_can_be_read_once_only(how, copier, tmp_path, capsysbinary):
    text = f"{A}\n\n{B}\n".encode()
    if how == "fifo":
        os.mkfifo(tmp_path / "in")
        threading.Thread(target=lambda: (tmp_path / "in").write_bytes(text), daemon=True).start()
        path = tmp_path / "in"
    else:
        reading, writing = os.pipe()
        os.write(writing, text)
        os.close(writing)
        path = f"/dev/fd/{reading}"
    command = ["translate", str(copier), "--cpu", "--input", str(path)]
    assert cli.main([*command, "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_bytes() == text
    assert [one.name for one in tmp_path.iterdir() if one.name != "in"] == ["out"]  # nothing says how it was made


def test_what_is_translated_is_not_translated_again(copier, tmp_path, capsys, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(copier.parent.parent, run)
    model = run / "model/checkpoint_last.pt"
    (tmp_path / "in").write_text(f"{A}\n{B}\n")
    command = ["translate", str(model), "--cpu", "--data", str(run / "data"), "--input", str(tmp_path / "in")]
    command += ["--output", str(tmp_path / "out")]
    assert cli.main(command) == 0
    with monkeypatch.context() as patched:
        patched.setattr("owf_fairseq.decoding.backends.load_backend", None)  # it would be called
        capsys.readouterr()
        assert cli.main([*command, "--max-tokens", "100"]) == 0  # what changes no translation
        said = capsys.readouterr().err
    assert said == f"owf translate: {tmp_path / 'out'}: made before with the same settings and inputs\n"
    assert cli.main([*command, "--beam", "2"]) == 2
    assert "was made with other settings (`--beam` 5, now 2)" in capsys.readouterr().err
    for read in (model, run / "data/dict.en.txt", run / "data/sentencepiece.model"):
        (tmp_path / "out").write_text("old")
        record = json.loads((tmp_path / ".out.owf.json").read_text())
        found = (tmp_path / "out").stat()
        record["output"] = [found.st_size, found.st_mtime_ns]
        (tmp_path / ".out.owf.json").write_text(json.dumps(record))
        assert cli.main(command) == 0
        assert (tmp_path / "out").read_text() == "old"
        os.utime(read)
        assert cli.main(command) == 0, read
        assert (tmp_path / "out").read_text() == f"{A}\n{B}\n"
    assert cli.main([*command, "--beam", "2", "--overwrite"]) == 0
    assert cli.main([*command, "--beam", "2"]) == 0


def test_no_file_of_the_model_is_overwritten(copier, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(copier.parent.parent, run)
    (run / "link").symlink_to(run / "data")
    model = run / "model/checkpoint_last.pt"
    (tmp_path / "in").write_text(f"{A}\n")
    names = ("model/checkpoint_last.pt", "data/dict.en.txt", "link/dict.de.txt", "link/sentencepiece.model")
    for name in (*names, "data/segmentation.json"):
        before = (run / name).read_bytes()
        command = ["translate", str(model), "--cpu", "--data", str(run / "data"), "--input", str(tmp_path / "in")]
        assert cli.main([*command, "--output", str(run / name), "--overwrite"]) == 2
        assert "is the input" in capsys.readouterr().err
        assert (run / name).read_bytes() == before
