"""A model of many directions: tags as fairseq's task puts them, and its translations line by line."""

import argparse
import json
import math
import os

import pytest
from fairseq_for_tests import COPIER, run

from owf_fairseq import USER_DIR, cli
from owf_fairseq.decoding.multilingual import MultilingualBackend, Tags, translate_directions
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.decoding.translator import Batching
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import read_lines

LANGS = ("de", "en", "fr")
PAIRS = ("de-en", "de-fr", "en-fr")
DIRECTIONS = [f"{source}-{target}" for source in LANGS for target in LANGS if source != target]
SCHEMES = {
    "target tag in the encoder": ["--encoder-langtok", "tgt"],
    "source tag, decoder's tag": ["--encoder-langtok", "src", "--decoder-langtok"],
}
TASK = ["--task", "translation_multi_simple_epoch", "--langs", ",".join(LANGS), "--lang-pairs", ",".join(DIRECTIONS)]


def sentences(number):
    """The languages have the same words, with a letter of their own before each."""
    words = "lamp door window garden kitchen heater".split()
    for n in range(number):
        picked = [words[(n * 7 + place * (n // 6 + 1)) % len(words)] for place in range(2 + n % 4)]
        yield {lang: " ".join(lang[0] + word for word in picked) for lang in LANGS}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Binary data of three languages in one folder, as fairseq's task reads them."""
    folder = tmp_path_factory.mktemp("languages")
    for split, number in (("train", 120), ("valid", 6), ("test", 9)):
        for lang in LANGS:
            (folder / f"{split}.{lang}").write_text("".join(f"{one[lang]}\n" for one in sentences(number)))
    words = sorted({word for one in sentences(120) for line in one.values() for word in line.split()})
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words))
    prefixes = [f"--{kind}pref={folder / kind}" for kind in ("train", "valid", "test")]
    for pair in PAIRS:
        source, target = pair.split("-")
        (folder / f"data/dict.{target}.txt").unlink(missing_ok=True)  # fairseq-preprocess does not replace it
        langs = ["-s", source, "-t", target]
        joint = ["--srcdict", folder / "dict.txt", "--joined-dictionary", "--workers", "1"]
        run("preprocess", *langs, *prefixes, *joint, "--destdir", folder / "data")
    (folder / "data/segmentation.json").write_text('{"type": "none", "source": "de", "target": "en"}')
    return folder / "data"


@pytest.fixture(scope="module")
def train(data, tmp_path_factory):
    """Trains a model with a scheme, once; returns its checkpoint."""
    checkpoints = {}
    training = f"{COPIER} --dropout 0 --optimizer adam --lr 0.005 --lr-scheduler inverse_sqrt --warmup-updates 50"
    training += " --criterion cross_entropy --sampling-method temperature --max-tokens 400 --max-update 160 --seed 1"
    training += " --required-batch-size-multiple 1 --num-workers 0 --cpu"
    training += " --disable-validation --no-epoch-checkpoints --no-progress-bar"

    def train(scheme):
        if scheme not in checkpoints:
            folder = tmp_path_factory.mktemp("model")
            how = ["--user-dir", USER_DIR, *TASK, *SCHEMES[scheme], *training.split(), "--save-dir", folder]
            run("train", data, *how)
            checkpoints[scheme] = folder / "checkpoint_last.pt"
        return str(checkpoints[scheme])

    return train


def generated(data, checkpoint, scheme, direction, pieces):
    """What fairseq-generate makes of the test set, in order: translations, and their scores as natural logarithms."""
    source, target = direction.split("-")
    longest = pieces + ("--decoder-langtok" in SCHEMES[scheme])  # fairseq counts the tag as a piece
    search = f"--beam 3 --max-len-a 0 --max-len-b {longest} --max-tokens 600 --required-batch-size-multiple 1".split()
    output = run(
        "generate", data, "--user-dir", USER_DIR, *TASK, *SCHEMES[scheme], "-s", source, "-t", target,
        "--path", checkpoint, *search, "--cpu", "--num-workers", "0",
    )  # fmt: skip
    lines = [line[2:].split("\t") for line in output.splitlines() if line.startswith("H-")]
    ordered = sorted((int(number), float(score) * math.log(2), text) for number, score, text in lines)
    assert [number for number, *_ in ordered] == list(range(9))
    return [text for *_, text in ordered], [score for _, score, _ in ordered]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_translations_are_those_of_fairseq_generate(scheme, data, train, tmp_path):
    checkpoint = train(scheme)
    model = MultilingualBackend.from_checkpoint(checkpoint, cpu=True)
    texts = {lang: data.parent / f"test.{lang}" for lang in LANGS}

    def translated(folder, pieces):
        options = SearchOptions(beam=3, max_len_a=0, max_len_b=pieces)
        made = translate_directions(model, texts, folder, DIRECTIONS, options, Batching(max_sentences=2))
        assert made == DIRECTIONS
        return {one: read_lines(folder / f"test.{one}.{one[3:]}") for one in DIRECTIONS}

    made, cut_off = translated(tmp_path / "whole", 20), translated(tmp_path / "short", 2)
    assert made["de-en"] == generated(data, checkpoint, scheme, "de-en", 20)[0]
    assert cut_off["en-fr"] == generated(data, checkpoint, scheme, "en-fr", 2)[0]
    texts_of, scores = generated(data, checkpoint, scheme, "fr-en", 20)
    model.choose("fr-en")
    options = SearchOptions(beam=3, max_len_a=0, max_len_b=20)
    found = model.search([model.segmentation().encode(line).split() for line in read_lines(texts["fr"])], options)
    assert [" ".join(best.pieces) for best, *_ in found] == texts_of == made["fr-en"]
    assert [best.score for best, *_ in found] == pytest.approx(scores, abs=1e-3)
    # it has learnt by now which language a tag stands for
    for direction, lines in made.items():
        words = " ".join(lines).split()
        right = sum(word.startswith(direction[3]) for word in words)
        assert right > 0.8 * len(words) > 0, (direction, lines)
        assert len(set(lines)) > 2  # so that their order can be told


def test_files_that_are_there_are_left_and_others_are_made(data, train, tmp_path):
    model = MultilingualBackend.from_checkpoint(train("source tag, decoder's tag"), data, cpu=True)
    texts = {lang: tmp_path / f"in.{lang}" for lang in LANGS}
    for lang, path in texts.items():
        path.write_text(f"{lang[0]}lamp {lang[0]}door\n\n{lang[0]}window\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/test.de-en.en").write_text("mine\n")
    assert translate_directions(model, texts, tmp_path / "out", ["de-en", "en-de"]) == ["en-de"]
    assert (tmp_path / "out/test.de-en.en").read_text() == "mine\n"
    first, blank, last = read_lines(tmp_path / "out/test.en-de.de")
    assert first
    assert not blank
    assert last
    assert "__" not in first + last


def test_all_problems_are_told_before_the_work(data, train, tmp_path):
    model = MultilingualBackend.from_checkpoint(train("source tag, decoder's tag"), data, cpu=True)
    (tmp_path / "de").write_text("a\nb\n")
    (tmp_path / "en").write_text("a\n")
    texts = {lang: tmp_path / lang for lang in ("de", "en")}
    with pytest.raises(InputError) as caught:
        translate_directions(model, texts, tmp_path / "out", ["de-it", "de-de"])
    text = str(caught.value)
    assert f"{tmp_path / 'de'} has 2, {tmp_path / 'en'} has 1" in text
    assert "there is no direction 'de-it': it has two of the languages de, en, fr" in text
    assert "'de-de'" in text
    assert not (tmp_path / "out").exists()
    (tmp_path / "en").write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        translate_directions(model, texts, tmp_path / "out", ["de-en"])


def test_checkpoint_of_another_task_is_refused(copier):
    with pytest.raises(InputError, match=r"is of the task 'translation', not of translation_multi_simple_epoch"):
        MultilingualBackend.from_checkpoint(str(copier), cpu=True)


def test_flags_that_put_tags_elsewhere_are_refused():
    flags = {"task": TASK[1], "lang_pairs": ["de-en"], "lang_tok_replacing_bos_eos": True, "langtoks_specs": ["main"]}
    with pytest.raises(InputError, match="trained with `--lang-tok-replacing-bos-eos`, which"):
        Tags.of_checkpoint(flags, "a.pt")
    known = Tags.of_checkpoint(vars(argparse.Namespace(**{**flags, "lang_tok_replacing_bos_eos": False})), "a.pt")
    assert known.langs == ("de", "en")
    assert known.before_source("de", "en") == []


def test_command_translates_and_measures(data, train, tmp_path, monkeypatch, capsys):
    """What the checkpoint was trained on is the default; the speed is that of the same translations."""
    monkeypatch.chdir(tmp_path)
    checkpoint = train("source tag, decoder's tag")
    folders = ["--input", str(data.parent), "--output", "out"]
    search = ["--beam", "2", "--batch-size", "4", "--cpu"]
    assert cli.main(["multilingual", "translate", checkpoint, *folders, *search]) == 0
    assert capsys.readouterr().out == "6 of 6 directions translated -> out\n"
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == [
        f"test.{one}.{one[3:]}" for one in DIRECTIONS
    ]
    words = sum(len(line.split()) for line in read_lines(tmp_path / "out/test.de-en.en"))

    command = ["multilingual", "translate", checkpoint, *folders]
    assert cli.main([*command, "--beam", "2", "--max-tokens", "90", "--cpu"]) == 0  # what changes no translation
    assert capsys.readouterr().out == "0 of 6 directions translated, 6 were there -> out\n"
    assert cli.main([*command, "--beam", "3", "--cpu"]) == 2
    assert "out/test.de-en.en was made with other settings (`--beam` 2, now 3)" in capsys.readouterr().err
    os.utime(data.parent / "test.fr")
    assert cli.main([*command, *search]) == 0
    assert capsys.readouterr().out == "2 of 6 directions translated, 4 were there -> out\n"
    assert cli.main([*command, "--beam", "1", "--cpu", "--overwrite"]) == 0
    assert capsys.readouterr().out == "6 of 6 directions translated -> out\n"

    how = ["--input", str(data.parent / "test.de"), "--beam", "2", "--runs", "1", "--cpu", "--json", "speed.json"]
    command = ["multilingual", "benchmark", f"mine={checkpoint}", "--direction", "de-en", *how]
    assert cli.main(command) == 0
    assert "mine" in capsys.readouterr().out
    (measured,) = json.loads((tmp_path / "speed.json").read_text())["measurements"]
    assert (measured["name"], measured["sentences"]) == ("mine", 9)
    assert measured["target_length"] * 9 == pytest.approx(words)
    before = (tmp_path / "speed.json").read_bytes()
    assert cli.main(command) == 0
    assert "speed.json: made before with the same settings and inputs" in capsys.readouterr().err
    assert (tmp_path / "speed.json").read_bytes() == before


def test_command_refuses_what_it_cannot_do(data, train, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    checkpoint = train("source tag, decoder's tag")

    def problems(*arguments):
        assert cli.main(["multilingual", *arguments, "--cpu"]) == 2
        return capsys.readouterr().err

    text = ["--input", str(data.parent / "test.de")]
    arch = problems("benchmark", "owf_tiny", "--direction", "de-en", *text)
    assert "owf_tiny: a direction is of a checkpoint" in arch
    assert "no direction 'de-it'" in problems("benchmark", checkpoint, "--direction", "de-it", *text)
    folders = ["--input", str(tmp_path), "--output", str(tmp_path / "out")]
    found = problems("translate", checkpoint, *folders, "--directions", "de-en", "de-it", "--beam", "0")
    assert "`--beam` must be at least 1, but is 0" in found
    assert f"{tmp_path / 'test.de'} can't be read" in problems("translate", checkpoint, *folders)
    assert not (tmp_path / "out").exists()
