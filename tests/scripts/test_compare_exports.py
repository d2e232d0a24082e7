"""The script behind the numbers of docs/serving: it runs, counts equal translations, and refuses before the work."""

import importlib.util
import json
import sys

import pytest
from fairseq_for_tests import REPOSITORY


@pytest.fixture
def compare(monkeypatch):
    """Runs the script in this process."""
    spec = importlib.util.spec_from_file_location("compare_exports", REPOSITORY / "scripts/measure/compare_exports.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["compare_exports.py", *map(str, arguments)])
        return script.main()

    return run


def test_equal_translations_are_counted(compare, copier, tmp_path, capsys):
    folder = copier.parent.parent
    text = ["--input", folder / "test.en", "--ref", folder / "test.de", "--lines", "5"]
    assert compare(copier, *text, "--json", tmp_path / "x.json") == 0
    rows = json.loads((tmp_path / "x.json").read_text())["rows"]
    assert [(row["precision"], row["same translation"]) for row in rows] == [("float32", "5 of 5"), ("int8", "5 of 5")]
    assert [(row["BLEU"], row["fairseq's"]) for row in rows] == [("100.00", "100.00")] * 2
    assert "| model | precision | bytes |" in capsys.readouterr().out
    assert compare(copier, *text, "--json", tmp_path / "x.json") == 0  # its own file is replaced
    (tmp_path / "x.json").write_text("{}")
    assert compare(copier, *text, "--json", tmp_path / "x.json") == 2


def test_what_cannot_be_compared(compare, copier, tmp_path, capsys):
    folder = copier.parent.parent
    text = ["--input", folder / "test.en", "--ref", folder / "valid.de"]
    assert compare(copier, *text, "--lines", "0", "--json", tmp_path) == 2
    said = capsys.readouterr().err
    assert "20 lines" in said
    assert "`--lines` must be at least 1" in said
    assert "`--json`" in said
