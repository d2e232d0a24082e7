"""scripts/multilingual's Python: what is fetched and joined, drawn for the vocabulary, and joined as binary data."""

import itertools
import json

import pytest
from scripts_for_tests import lines_of, load_script, parse

from owf_fairseq import cli

PAIRS = ["de-en", "de-sw", "en-sw"]


@pytest.fixture
def download():
    return load_script("multilingual/download.py")


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def run_here(command):
    """Runs a command of ``owf`` in this process."""
    assert command[0] == "owf"
    return cli.main(list(command[1:])) == 0


def write_local(folder):
    for lang in ("de", "en", "sw"):
        for prefix in ("valid", "test", "train"):
            write(folder / f"{prefix}.{lang}", [f"{prefix} {lang} {n}" for n in range(3)])
    for lang in ("de", "en"):
        write(folder / f"train.en-de.{lang}", [f"own {lang} {n}" for n in range(4)])


def test_text_from_a_folder(download, tmp_path):
    """One pair has a text of its own, in either order; all others have what is there in all languages."""
    write_local(tmp_path / "local")
    run = tmp_path / "run"
    assert download.download(download.Request(run, ["de", "en", "sw"], tmp_path / "local", 3), 2, run_here)
    assert lines_of(run / "raw/train.de-en.de") == ["own de 0", "own de 1", "own de 2"]
    assert lines_of(run / "raw/train.en-sw.sw") == lines_of(tmp_path / "local/train.sw")
    assert lines_of(run / "raw/valid.sw") == lines_of(tmp_path / "local/valid.sw")
    assert sorted(path.name for path in (run / "test").glob("test.*")) == ["test.de", "test.en", "test.sw"]
    assert lines_of(run / "langs.txt") == ["de,en,sw"]
    assert lines_of(run / "pairs.txt") == PAIRS
    assert lines_of(run / "directions.txt") == ["de-en,de-sw,en-de,en-sw,sw-de,sw-en"]


@pytest.mark.parametrize("cause", ["dead address", "damaged file"])
def test_text_from_the_network(cause, download, tmp_path, monkeypatch, capsys):
    """What is held out first; a pair that can't be had doesn't hold up the others, and nothing goes on from it."""
    monkeypatch.setenv("MTDATA", str(tmp_path / "cache"))
    commands, fetched = [], []
    broken = "OPUS-ccmatrix-v1-deu-jpn"

    def run(command):
        commands.append(list(command))
        return cause == "dead address" or broken not in command

    def fetch(names, root, jobs):
        fetched.append(names)
        return {broken: "no route"} if cause == "dead address" and broken in names else {}

    assert not download.download(download.Request(tmp_path, ["de", "en", "ja"], None, 5), 1, run, fetch)
    assert [len(names) for names in fetched] == [4, 9]
    said = f"download: {broken} can't be fetched (no route): start again"
    assert (said in capsys.readouterr().err) == (cause == "dead address")
    assert not (tmp_path / "langs.txt").exists()
    calls = [parse(command) for command in commands]
    fetched = [one for one, command in zip(calls, commands, strict=True) if command[0] == "mtdata"]
    tried = 3 if cause == "damaged file" else 2
    assert [len(one.train_dids or []) for one in fetched] == [0, 0, 0, 0, *[3] * tried]
    assert all(one.fail_on_error for one in fetched)
    joined = [one for one, command in zip(calls, commands, strict=True) if command[0] == "owf"]
    assert [one.lines for one in joined] == [997, 997, 1012, 1012, None, None]
    assert [one.output[0].rsplit("/", 1)[1] for one in joined[-2:]] == ["train.de-en.de", "train.en-ja.en"]
    train = joined[-1]
    assert (train.limit, train.drop_empty, train.max_words) == (5, True, 250)
    names = ("ted2020", "wikimatrix", "ccmatrix")
    parts = tmp_path / "mtdata/en-ja/train-parts"
    assert train.input == [[str(parts / f"OPUS-{n}-v1-eng-jpn.{lang}.gz") for lang in ("eng", "jpn")] for n in names]


def test_corpora_that_are_left_out(download, tmp_path, monkeypatch, capsys):
    """They are neither fetched nor unpacked, and the record says so; so are the pairs of the others."""
    monkeypatch.setenv("MTDATA", str(tmp_path / "cache"))
    request = download.Request(tmp_path, ["en", "sw"], None, None, ("OPUS-ccmatrix-*", "OPUS-ted2020-v1-eng-swa"))
    fetched = []

    def run(command):
        if command[0] == "mtdata":
            return True
        args = parse(command)
        if args.json:
            counts = [{"read": 7, "written": 6}] * len(args.input)
            write(tmp_path / "counts" / args.json.rsplit("/", 1)[1], [json.dumps({"corpora": counts})])
        return True

    def fetch(names, root, jobs):
        fetched.extend(names)
        return {}

    assert download.download(request, 1, run, fetch)
    assert [name for name in fetched if "OPUS" in name] == ["OPUS-wikimatrix-v1-eng-swa"]
    record = json.loads((tmp_path / "raw/corpora.json").read_text())
    assert (record["expected"], record["found"], record["kept"]) == (None, 7, 6)
    assert [(corpus["name"].split("-")[1], corpus["found"]) for corpus in record["corpora"]] == [
        ("ted2020", None),
        ("wikimatrix", 7),
        ("ccmatrix", None),
    ]
    (note,) = lines_of(tmp_path / "raw/notes.txt")
    assert note.startswith("the training text lacks OPUS-ted2020-v1-eng-swa, OPUS-ccmatrix-v1-eng-swa: left out")
    assert "not known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--without", "OPUS-none-*"], "`--without` must be one of OPUS-ted2020-v1-deu-eng, "),
        (["--langs", "en", "sw", "ko", "--without", "*-kor-swa"], "`--without` leaves no corpus of ko-sw"),
        (["--langs", "en", "sw", "--local", ".", "--without", "x"], "`--without` is for corpora that are fetched"),
        (["--langs", "en", "en"], "`--langs` must name two languages at least, but is en"),
        (["--langs", "en zh-Hans"], "fairseq needs languages of letters and _, but one is zh-Hans"),
        (["--langs", "en", "xx"], "corpora.tsv has no text in xx"),
        (["--jobs", "0"], "`--jobs` must be at least 1, but is 0"),
        (["--limit", "0"], "`--limit` must be at least 1, but is 0"),
        (["--langs", "en", "sw", "--local", "nowhere"], "nowhere has neither train.en-sw.en nor train.en"),
    ],
)
def test_what_cannot_be_used_is_refused(words, problem, download, tmp_path, capsys):
    assert download.main(["--run", str(tmp_path / "run"), *words]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_corpora_are_there_for_all_languages(download):
    """Every pair of the ten languages has CCMatrix, and every language FLORES."""
    rows = download.corpora()
    for pair in itertools.combinations(download.LANGS, 2):
        names = [name for split, *of, name in rows if split == "train" and tuple(of) == pair]
        assert sum(name.startswith("OPUS-ccmatrix-v1-") for name in names) == 1
    for held_out in ("valid", "test"):
        assert {lang for split, *pair, _ in rows if split == held_out for lang in pair} == {*download.LANGS}


def test_vocabulary_is_learnt_from_as_much_of_each_language(tmp_path, capsys):
    """Evenly drawn over all texts in it, each line once."""
    sample = load_script("multilingual/sample.py")
    for pair, number in zip(PAIRS, (40, 4, 10), strict=True):
        for lang in pair.split("-"):
            write(tmp_path / f"raw/train.{pair}.{lang}", [f"{lang} {n} {pair}" for n in range(number)])
    words = ["--raw", str(tmp_path / "raw"), "--output", str(tmp_path / "sample"), "--lines"]
    assert sample.main([*words, "5"]) == 0
    assert lines_of(tmp_path / "sample/de.txt") == [f"de {n} de-en" for n in (0, 9, 18, 27, 36)]
    assert lines_of(tmp_path / "sample/sw.txt") == [
        "sw 0 de-sw",
        "sw 3 de-sw",
        "sw 2 en-sw",
        "sw 5 en-sw",
        "sw 8 en-sw",
    ]
    write(tmp_path / "raw/train.de-en.de", ["same"] * 3)
    assert list(sample.draw([tmp_path / "raw/train.de-en.de"], 2)) == [b"same\n"]
    assert sample.main([*words, "0"]) == 2
    assert sample.main(["--raw", str(tmp_path), "--output", "x"]) == 2
    assert "run scripts/multilingual/download.sh first" in capsys.readouterr().err


def test_binary_data_of_all_pairs_are_joined(tmp_path, capsys):
    join = load_script("multilingual/join.py")
    for pair in PAIRS:
        for name in ("dict.de.txt", f"shard-00/train.{pair}.de.bin", ".owf.json"):
            write(tmp_path / "pairs" / pair / name, [pair])
    write(tmp_path / "pairs/.de-en.partial/train.bin", ["not complete"])
    data = tmp_path / "data"
    assert join.main([str(tmp_path / "pairs"), str(data)]) == 0
    assert sorted(path.name for path in (data / "shard-00").iterdir()) == [f"train.{pair}.de.bin" for pair in PAIRS]
    assert (data / "dict.de.txt").samefile(tmp_path / "pairs/en-sw/dict.de.txt")
    assert not (data / "train.bin").exists()
    before = data.stat().st_ino
    assert join.main([str(tmp_path / "pairs"), str(data)]) == 0
    assert data.stat().st_ino == before  # nothing to do
    assert join.main([str(tmp_path / "nowhere"), str(data)]) == 2
    assert "has no data of pairs" in capsys.readouterr().err


def test_romanian_has_commas_below(tmp_path, capsys):
    script = load_script("wmt16_en_ro/commas_below.py")
    (tmp_path / "a").write_bytes("ŞşŢţ s\u0327 T\u0327 ăâî ç c\u0327\u2028x\r\n\nend\n".encode())
    assert script.main([str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert (tmp_path / "b").read_bytes() == "ȘșȚț ș Ț ăâî ç c\u0327\u2028x\r\n\nend\n".encode()
    assert (tmp_path / "a").stat().st_mtime_ns == (tmp_path / "b").stat().st_mtime_ns
    assert script.main([str(tmp_path / "a"), str(tmp_path / "a")]) == 2
    (tmp_path / "c").write_bytes(b"\xff\n")
    assert script.main([str(tmp_path / "c"), str(tmp_path / "d")]) == 2
    assert not (tmp_path / "d").exists()
