"""The quickstart's table says what was measured, and refuses to score lines that don't belong together."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from fairseq_for_tests import REPOSITORY

from owf_fairseq.data.lines import write_lines
from owf_fairseq.errors import InputError

SOURCES = ["the lamp is on", "the door is open", "a window | opens slowly"]
REFERENCES = ["die Lampe ist an", "die Tür ist offen", "ein Fenster öffnet sich langsam"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quickstart_table", REPOSITORY / "scripts" / "quickstart_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_output(path: Path, hypotheses: list[str], tokens: int, rate: float) -> None:
    lines = [f"H-{number}\t-0.5\t{hypotheses[number]}" for number in reversed(range(len(hypotheses)))]
    summary = (
        f"Translated {len(hypotheses)} sentences ({tokens:,} tokens) in 1.0s (1.00 sentences/s, {rate:.2f} tokens/s)"
    )
    path.parent.mkdir(exist_ok=True)
    write_lines(path, lines)
    write_lines(path.with_suffix(".log"), [f"INFO:fairseq_cli.generate:{summary}"])


@pytest.fixture
def run(tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "corpus.json").write_text(json.dumps({"source": "en", "target": "de", "counts": {"train": 1234}}))
    write_lines(corpus / "test.en", SOURCES)
    write_lines(corpus / "test.de", REFERENCES)
    # 20 tokens and 3 ends of sentence: in 1 s and 3 s; then in 1 s and 1 s.
    for arch, hypotheses, rates in [
        ("one", REFERENCES, (23, 23 / 3)),
        ("two", ["die Lampe ist aus", "", "ein Fenster"], (23, 23)),
    ]:
        for round_, rate in enumerate(rates, 1):
            write_output(tmp_path / arch / f"test.{round_}.out", hypotheses, 23, rate)
    monkeypatch.setattr(script, "parameters", lambda checkpoint, data: 1_700_000)
    return tmp_path


def test_table(script: ModuleType, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--run", str(run), "--archs", "one", "two", "--rounds", "2"]) == 0
    table = json.loads((run / "table.json").read_text(encoding="utf-8"))
    one, two = table["models"]
    assert one["bleu"] == pytest.approx(100)
    assert one["chrf"] == pytest.approx(100)
    assert 0 < two["bleu"] < 60
    assert one["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert one["tokens_per_second"] == pytest.approx(40 / 4, rel=1e-2)
    assert two["tokens_per_second"] == pytest.approx(40 / 2, rel=1e-2)
    assert (one["relative_speed"], two["relative_speed"]) == (1, pytest.approx(2, rel=1e-2))
    assert table["samples"][2] == {
        "source": SOURCES[2], "reference": REFERENCES[2], "one": REFERENCES[2], "two": "ein Fenster",
    }  # fmt: skip
    text = (run / "table.md").read_text(encoding="utf-8")
    assert "| one | 1,700,000 | 100.0 | 100.0 | 10.0 | 1.00 |" in text
    assert one["chrf_signature"] in text
    assert capsys.readouterr().out == text


def test_a_lost_sentence_is_refused(script: ModuleType, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_output(run / "two" / "test.2.out", REFERENCES[:2], 10, 5)
    assert script.main(["--run", str(run), "--archs", "one", "two", "--rounds", "2"]) == 2
    assert "test.2.out has no translation of 1 of 3 sentences: 2" in capsys.readouterr().err
    assert not (run / "table.md").exists()


def test_unequal_numbers_of_lines_are_refused(script: ModuleType) -> None:
    with pytest.raises(InputError, match="2 translations for 3 references"):
        script.score(REFERENCES[:2], REFERENCES, "de")


def test_languages_without_spaces_have_a_tokenizer_of_their_own(script: ModuleType) -> None:
    signatures = {
        lang: script.score(["点亮灯"], ["点亮灯"], lang)["bleu_signature"] for lang in ("zh-Hans", "ja", "pt-BR")
    }
    assert [signature.split("tok:")[1].split("|")[0] for signature in signatures.values()] == ["zh", "char", "13a"]
