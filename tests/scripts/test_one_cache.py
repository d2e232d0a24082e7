"""The experiment with one cache for shared attention: it changes what shares, and nothing else."""

import json

import pytest
from fairseq_for_tests import COPIER, text_sentences, train_on_text
from scripts_for_tests import lines_of, load_script

from owf_fairseq import cli

one_cache = load_script("measure/one_cache.py")
SHARING = COPIER.replace("--decoder-layers 1", "--decoder-layers 3") + " --decoder-self-attn shared"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in text_sentences(20, seed=77)))
    return path


def test_a_shared_cache_spoils_the_translations_of_the_same_weights(text, tmp_path, capsys):
    (tmp_path / "sharing").mkdir()
    checkpoint = train_on_text(tmp_path / "sharing", SHARING)
    files = {name: tmp_path / name for name in ("own.de", "one.de", "scores.json")}
    assert cli.main(["translate", str(checkpoint), "--input", str(text), "--output", str(files["own.de"])]) == 0
    what = ["--input", text, "--ref", text, "--output", files["one.de"], "--json", files["scores.json"]]
    assert one_cache.main([str(checkpoint), *map(str, what)]) == 0
    own, one = lines_of(files["own.de"]), lines_of(files["one.de"])
    assert one_cache.translated(str(checkpoint), lines_of(text), one_cache=False) == own
    scores = json.loads(files["scores.json"].read_text())["scores"]
    assert scores["a cache for each layer"] == one_cache.scored(own, lines_of(text))
    assert scores["one cache"] == one_cache.scored(one, lines_of(text))
    assert scores["one cache"]["bleu"] < scores["a cache for each layer"]["bleu"] - 20
    assert "| one cache |" in capsys.readouterr().out


def test_models_that_share_nothing_are_the_same(copier, text):
    lines = lines_of(text)
    assert one_cache.translated(str(copier), lines, True) == one_cache.translated(str(copier), lines, False)


def test_what_cannot_be_read_is_told(copier, text, tmp_path, capsys):
    (tmp_path / "short").write_text("one line\n")
    assert one_cache.main([str(copier), "--input", str(text), "--ref", str(tmp_path / "short")]) == 2
    assert "has 20 lines, but" in capsys.readouterr().err
    assert one_cache.main([str(copier), "--input", str(tmp_path / "a"), "--ref", str(tmp_path / "b")]) == 2
    err = capsys.readouterr().err
    assert f"{tmp_path}/a" in err
    assert f"{tmp_path}/b" in err
