"""What the quickstart fetches and shows."""

import subprocess
from pathlib import Path

from scripts_for_tests import load_script


def test_the_wheel_is_fetched_once_and_whole(tmp_path, monkeypatch):
    script = load_script("quickstart/fetch.py")
    wheel = tmp_path / "cache/some_thing-1.2-py3-none-any.whl"
    wanted = []

    def pip(command, check):
        wanted.append(Path(command[-1]).read_text())
        (Path(command[command.index("--dest") + 1]) / wheel.name).write_text("whole" if len(wanted) > 1 else "ha")
        return subprocess.CompletedProcess(command, len(wanted) == 1)

    monkeypatch.setattr(subprocess, "run", pip)
    assert script.main([str(wheel)]) == 1
    assert list(wheel.parent.iterdir()) == []
    assert script.main([str(wheel)]) == 0
    assert script.main([str(wheel)]) == 0
    assert wheel.read_text() == "whole"
    assert list(wheel.parent.iterdir()) == [wheel]
    assert wanted == [f"some_thing==1.2 --hash=sha256:{script.SHA256}\n"] * 2


def test_sentences_stand_under_each_other(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}1\n{name}2\n{name}3\n")
    script = load_script("quickstart/show.py")
    assert script.main([f"source={tmp_path / 'a'}", f"model={tmp_path / 'b'}", "--lines", "2"]) == 0
    assert capsys.readouterr().out.split("\n") == [
        f"{'source':<24} a1", f"{'model':<24} b1", "", f"{'source':<24} a2", f"{'model':<24} b2", "", ""
    ]  # fmt: skip
