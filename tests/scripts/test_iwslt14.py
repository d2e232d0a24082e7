"""IWSLT14 German-English from files in the archive's form to both of its BLEU scores."""

import json
import random

import pytest
from sacrebleu.metrics import BLEU
from scripts_for_tests import Scripts, lines_of, load_script, parse

from owf_fairseq import cli
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.files.lines import write_lines

WORDS = {
    "de": "Die Lampe Tür sieht well-known öffnet das Haus".split(),
    "en": "The lamp door sees well-known opens a house".split(),
}
SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")


@pytest.fixture(scope="module")
def text():
    return load_script("iwslt14_de_en/text.py")


@pytest.fixture(scope="module")
def tokens():
    return load_script("iwslt14_de_en/tokens.py")


@pytest.fixture
def archive(tmp_path):
    """70 talks' worth of sentences, what cleaning leaves out among them, and the five test sets."""
    folder = tmp_path / "de-en"
    folder.mkdir()
    for lang, words in WORDS.items():
        draw = random.Random(1)
        lines = ['<doc docid="1" genre="lectures">', "<url>http://talks</url>", "<keywords>a, b</keywords>"]
        lines += ["<talkid>7</talkid>", f"<title>{words[1]} {words[2]}</title>"]
        lines += [f"<description>{lang.upper()}: {words[0]} {words[1]}.</description>"]
        for _ in range(70):
            chosen = " ".join(words[draw.randrange(8)] for _ in range(6))
            lines.append(f" {chosen}. {words[0]} {words[1]}. ")
        lines += [" ", " ".join(words[:4]) if lang == "de" else words[0], " ".join(["x"] * 176), "</doc>"]
        write_lines(folder / f"train.tags.de-en.{lang}", lines)
        for name in SETS:
            segments = [
                f'<seg id="{n}"> {words[n]} {words[1]}\u2019s {name} &amp; so. {words[0]} end. </seg>' for n in (1, 2)
            ]
            document = ['<?xml version="1.0" encoding="UTF-8"?>', "<doc>", "<title>T</title>", *segments, "</doc>"]
            write_lines(folder / f"IWSLT14.{name}.de-en.{lang}.xml", document)
    return folder


def test_what_is_text_and_what_is_kept(archive, text, tmp_path, capsys):
    assert text.main(["--run", str(tmp_path), "--local", str(archive)]) == 0
    train, valid, test = (
        [lines_of(tmp_path / f"raw/{split}.{lang}") for lang in WORDS] for split in ("train", "valid", "test")
    )
    # a title, a description and 70 sentences; an empty, an unequal and a long pair are left out; every 23rd validates
    assert [len(side) for side in (*train, *valid, *test)] == [69, 69, 3, 3, 10, 10]
    assert [side[0] for side in train] == ["Lampe Tür", "lamp door"]
    assert train[1][1] == "EN: The lamp."
    sentences = [line.strip() for line in lines_of(archive / "train.tags.de-en.en")[6:76]]
    assert [valid[1][n] for n in range(3)] == [sentences[n] for n in (20, 43, 66)]
    assert test[0][0] == "Lampe Lampe's TED.dev2010 & so. Die end."
    assert test[1][:3] == [
        "lamp lamp's ted.dev2010 & so. the end.", "door lamp's ted.dev2010 & so. the end.",
        "lamp lamp's tedx.dev2012 & so. the end.",
    ]  # fmt: skip
    assert lines_of(tmp_path / "original/test.en")[0] == "lamp lamp's TED.dev2010 & so. The end."
    assert "train: 69 pairs (fairseq's preparation gives 160,239)" in capsys.readouterr().out
    assert text.main(["--run", str(tmp_path / "cased"), "--local", str(archive), "--cased", "--limit", "30"]) == 0
    assert lines_of(tmp_path / "cased/raw/test.en") == lines_of(tmp_path / "original/test.en")
    assert len(lines_of(tmp_path / "cased/raw/train.de")) == 29
    assert (tmp_path / "cased/raw/flags").read_text() == "\n"


def test_files_that_do_not_belong_together(archive, text, tmp_path, capsys):
    path = archive / "train.tags.de-en.de"
    path.write_text(path.read_text().replace("<url>http://talks</url>", "kein Text"))
    assert text.main(["--run", str(tmp_path), "--local", str(archive)]) == 2
    assert "train.tags.de-en.en, line 2 is no text" in capsys.readouterr().err
    assert not (tmp_path / "raw").exists()


def test_tokens_as_fairseqs_preparation_has_them(tokens):
    assert tokens.tokens_of_pieces("Th@@ e well @-@ kn@@ own lamp &apos;s .") == "the well-known lamp &apos;s ."


@pytest.mark.parametrize("cased", [False, True])
def test_from_the_archive_to_both_scores(archive, tmp_path, capsys, monkeypatch, cased):
    """The commands of all five scripts, in this process."""
    monkeypatch.chdir(tmp_path)
    scripts = Scripts(tmp_path)
    run = scripts.run

    def walk(step, *words, **env):
        commands = scripts.commands(f"iwslt14_de_en/{step}.sh", *words, **env)
        for command in commands:
            if command[0] == "python":
                name = command[1].rpartition("/")[2]
                assert load_script(f"iwslt14_de_en/{name}").main(command[2:]) == 0
            else:
                assert cli.main(command[1:]) == 0, command
        return commands

    walk("download", *(["--cased"] if cased else []), LOCAL=archive)
    (prepare,) = walk("preprocess", "--vocab-size", "40")
    assert parse(prepare).lowercase is not cased
    record = json.loads((run / "data/segmentation.json").read_text())
    assert (record["type"], record.get("lowercase", False), record["merges"]) == ("moses-bpe", not cased, 40)
    small = [f"--{stack}-{what}" for stack in ("encoder", "decoder") for what in ("layers=1", "embed-dim=16")]
    small += [
        f"--{stack}-{what}" for stack in ("encoder", "decoder") for what in ("ffn-embed-dim=16", "attention-heads=2")
    ]
    walk(
        "train", "iwslt14_de_en/iwslt", "--fp32", "--cpu", "--max-tokens", "400", "--max-update", "5",
        "--update-freq", "1", "--save-interval-updates", "1", "--num-workers", "0", *small,
    )  # fmt: skip
    average, translate, _ = walk("generate", "iwslt14_de_en/iwslt", "--beam", "2", "--cpu", LAST="2")
    assert (parse(average).last, parse(average).output) == (2, parse(translate).checkpoint)
    translations, in_tokens = lines_of(run / "iwslt/test.en"), lines_of(run / "iwslt/test.tok")
    assert len(translations) == len(in_tokens) == 10
    assert [line.lower() for line in in_tokens] == in_tokens
    capsys.readouterr()
    # what a good model would have written, with one sentence wrong
    segmentation = Segmentation.load(run / "data")
    source = lines_of(run / "original/test.en")
    good = [segmentation.encode(line, "en") for line in ["The door opens.", *source[1:]]]
    write_lines(run / "iwslt/test.pieces", good)
    (again,) = [one for one in scripts.commands("iwslt14_de_en/generate.sh", "iwslt", LAST="2") if one[0] == "python"]
    assert load_script("iwslt14_de_en/tokens.py").main(again[2:]) == 0
    *_, plain, _, tokenized, report = [["owf"], *walk("evaluate", "iwslt14_de_en/iwslt", "--samples", "9")]
    assert parse(plain).ref == [f"{run}/raw/test.en"]
    assert (parse(tokenized).tokenize, parse(report).results) == ("none", [f"{run}/scores.json"])
    for name, ref, hyp, tokenizer in (
        ("scores", "raw/test.en", "iwslt/test.en", "13a"), ("tokenized", "original/test.tok", "iwslt/test.tok", "none")
    ):  # fmt: skip
        (system,) = json.loads((run / f"{name}.json").read_text())["systems"]
        expected = BLEU(tokenize=tokenizer).corpus_score(lines_of(run / hyp), [lines_of(run / ref)])
        assert system["scores"]["bleu"]["score"] == pytest.approx(expected.score)
        assert 80 < expected.score < 100
    # in the references a sentence ends where Moses saw it before the capitals were gone
    assert lines_of(run / "original/test.tok")[1].endswith("&amp; so . the end .")
    assert lines_of(run / "iwslt/test.tok")[1] == lines_of(run / "original/test.tok")[1]
