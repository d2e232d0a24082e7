"""scripts/multilingual from end to end on three languages, with a small model and few updates."""

import itertools
import json
import shutil

import pytest
from fairseq import tasks
from fairseq.data import data_utils
from fairseq_for_tests import REPOSITORY
from scripts_for_tests import SHARED_DATA, Scripts, lines_of, read_by_mtdata

from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.data.segmentation import Segmentation

DATA = SHARED_DATA / "ntrex"
LANGS = ("de", "en", "sw")
PAIRS = ["de-en", "de-sw", "en-sw"]
DIRECTIONS = [f"{source}-{target}" for source, target in itertools.permutations(LANGS, 2)]
PARTS = {"train": (0, 90), "de-en": (90, 200), "valid": (200, 206), "test": (206, 400)}
SHORT = 40
"""Characters of sentences to test with: the model writes as much as it may, and its speed is measured five times."""
QUICK = "--fp32 --cpu --num-workers 0 --arch owf_tiny --max-tokens 1500 --update-freq 1 --warmup-updates 2"
QUICK += " --validate-interval-updates 4 --batch-size-valid 36"

MTDATA = """#!/bin/bash
printf '%s\\n' "$*" >>"$RECORD"
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2 ;;
    --train) folder=train-parts suffix=.gz lines=2 ;;
    --dev) folder=tests lines=997 ;;
    --test) folder=tests lines=1012 ;;
    OPUS-* | Flores-*) names="$names $1" ;;
  esac
  shift
done
mkdir -p "$out/$folder"
for name in $names; do
  case $name in *deu-jpn) [ -e "$CONNECTED" ] || exit 1 ;; esac
  first=${name%-*} first=${first##*-}
  for language in "$first" "${name##*-}"; do
    for n in $(seq "$lines"); do echo "${name%-"$first"*} $n in $language"; done >"$out/$folder/$name.$language"
    [ -z "$suffix" ] || gzip "$out/$folder/$name.$language"
  done
done
"""


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def real(lang, part):
    """Lines of NTREX, which end with CR and LF."""
    english, lines = (lines_of(DATA / f"ntrex400.{one}")[slice(*PARTS[part])] for one in ("en", lang))
    return [
        line.removesuffix("\r")
        for line, original in zip(lines, english, strict=True)
        if part != "test" or len(original) < SHORT
    ]


def write_local(folder):
    """One pair of languages has a text of its own; all others have what is there in all languages."""
    if not DATA.is_dir():
        pytest.skip(f"no NTREX in {DATA}")
    for lang in LANGS:
        for split in ("train", "valid", "test"):
            write(folder / f"{split}.{lang}", real(lang, split))
    for lang in ("de", "en"):
        write(folder / f"train.de-en.{lang}", real(lang, "de-en"))


def check_binary_data(run):
    """Both shards together have every pair, one vocabulary of 500 for all languages, and held-out text of all pairs."""
    shards = [run / "data/shard-00", run / "data/shard-01"]
    segmentation = Segmentation.load(shards[0])
    record = json.loads((shards[0] / "segmentation.json").read_text())
    assert (record["type"], record["vocab_size"], record["character_coverage"]) == ("sentencepiece", 500, 0.9995)
    dictionaries = [lines_of(shard / f"dict.{lang}.txt") for shard in shards for lang in LANGS]
    assert len(dictionaries[0]) == 500 - 4
    assert all(dictionary == dictionaries[0] for dictionary in dictionaries)
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *(line.split(" ")[0] for line in dictionaries[0])]

    def text(shard, name):
        rows = data_utils.load_indexed_dataset(str(shard / name), None)
        return [segmentation.decode(" ".join(symbols[number] for number in row[:-1])) for row in rows]

    for pair in PAIRS:
        part = "de-en" if pair == "de-en" else "train"
        for lang in pair.split("-"):
            prepared = [line for shard in shards for line in text(shard, f"train.{pair}.{lang}")]
            wanted = [segmentation.clean(line) for line in real(lang, part)]
            assert len(prepared) == len(wanted)
            assert len({*prepared} & {*wanted}) > 0.8 * len(wanted)  # the rest has rare characters
            for split in ("valid", "test"):
                assert len(text(shards[0], f"{split}.{pair}.{lang}")) == len(real(lang, split))


def check_tags(checkpoint):
    """The source's tag stands before the source, the target's before the target, in every direction."""
    task = tasks.setup_task(read_checkpoint(checkpoint)["cfg"]["task"])
    task.load_dataset("valid")
    sets = dict(zip(task.lang_pairs, task.dataset("valid").datasets, strict=True))
    assert list(sets) == DIRECTIONS
    for direction, pairs in sets.items():
        source, target = direction.split("-")
        assert task.source_dictionary[int(pairs[0]["source"][0])] == f"__{source}__"
        assert task.target_dictionary[int(pairs[0]["target"][0])] == f"__{target}__"


def test_from_the_text_to_the_table(scripts, monkeypatch):
    """Real results of each step; done a second time, a step does nothing, and an interrupted one goes on."""
    write_local(scripts.folder / "local")
    run = scripts.folder / "run"

    def step(name, *arguments):
        """Runs a script; returns which subcommands of ``owf`` it called, and what it printed."""
        done = scripts.succeed(f"multilingual/{name}.sh", *arguments, "--output", "run")
        return [command[0] for command in scripts.commands], done.stdout

    local = ["--local", "local", "--langs", "sw de en"]
    assert step("download", *local)[0] == ["pairs"] * 7
    assert (run / "langs.txt").read_text() == "de en sw\n"
    for lang in LANGS:
        for pair in PAIRS:
            if lang in pair:
                wanted = real(lang, "de-en" if pair == "de-en" else "train")
                assert lines_of(run / f"raw/train.{pair}.{lang}") == wanted
        for split in ("valid", "test"):
            assert lines_of(run / f"raw/{split}.{lang}") == real(lang, split)
    assert step("download", *local)[0] == []

    vocabulary = ["--vocab-size", "500", "--sample", "70", "--shards", "2"]
    assert step("preprocess", *vocabulary, "--workers", "1")[0] == ["prepare"] * 3
    first, *others = scripts.commands
    assert f"{run}/sample/de.txt {run}/sample/en.txt {run}/sample/sw.txt" in " ".join(first)
    assert all(f"--like {run}/pairs/de-en" in " ".join(other) for other in others)
    assert [len(lines_of(run / f"sample/{lang}.txt")) for lang in LANGS] == [70, 70, 70]
    check_binary_data(run)
    assert step("preprocess", *vocabulary)[0] == []

    assert step("train", "big", *QUICK.split(), "--max-update", "4")[0] == ["train"]
    (command,) = scripts.commands
    assert command[command.index("--data") + 1] == f"{run}/data/shard-00:{run}/data/shard-01"
    assert command[command.index("--langs") + 1] == "de,en,sw"
    assert command[command.index("--lang-pairs") + 1] == ",".join(DIRECTIONS)
    checkpoint = run / "big/checkpoint_best.pt"
    check_tags(checkpoint)

    search = "--cpu --beam 1 --max-len-a 0 --max-len-b 9 --limit 3".split()
    assert step("generate", "big", *search)[0] == ["multilingual"]
    translations = {direction: run / f"big/test/test.{direction}.{direction[3:]}" for direction in DIRECTIONS}
    assert all(len(lines_of(path)) == 3 for path in translations.values())
    assert step("generate", "big", *search)[0] == []
    kept = translations["de-en"].stat().st_mtime_ns
    translations["sw-de"].unlink()
    (run / "steps/translate-big.done").unlink()
    assert "1 of 6 directions translated, 5 were there" in step("generate", "big", *search)[1]
    assert translations["de-en"].stat().st_mtime_ns == kept
    checkpoint.touch()
    assert "6 of 6 directions translated" in step("generate", "big", *search)[1]

    # sacreBLEU's vocabulary for spBLEU is fetched when it is first used
    models = scripts.folder / "sacrebleu/models"
    models.mkdir(parents=True)
    shutil.copy(run / "data/shard-00/sentencepiece.model", models / "sacrebleu_tokenizer_spm.model")
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", str(scripts.folder / "sacrebleu"))
    write(translations["de-en"], real("en", "test")[:3])
    commands, printed = step("evaluate", "big", "--limit", "3", "--speed", "de-en", "--cpu")
    assert commands == ["evaluate", "multilingual", "report"]
    assert all("--cpu" in command for command in scripts.commands[:2])
    scores = json.loads((run / "scores.json").read_text())
    assert sorted(scores["directions"]) == DIRECTIONS
    assert scores["segments"] == 3 * len(DIRECTIONS)
    (system,) = scores["systems"]
    found = {direction: one["scores"]["spbleu"]["score"] for direction, one in system["directions"].items()}
    assert found.pop("de-en") == pytest.approx(100)
    assert max(found.values()) < 50
    assert 0 < system["scores"]["spbleu"]["score"] < 100  # of all directions together
    assert "chrf" in system["scores"]
    speed = json.loads((run / "speed.json").read_text())
    assert speed["measurements"][0]["sentences"] == 3
    assert (run / "table.md").read_text() in printed
    assert "spBLEU" in (run / "table.md").read_text()


def test_vocabulary_is_learnt_from_as_much_of_each_language(scripts):
    """Evenly drawn over all texts in it, each line once."""
    run = scripts.folder / "run"
    for pair, number in zip(PAIRS, (40, 4, 10), strict=True):
        for lang in pair.split("-"):
            write(run / f"raw/train.{pair}.{lang}", [f"{lang} {n} {pair}" for n in range(number)])
    for lang in LANGS:
        write(run / f"raw/valid.{lang}", ["one"])
        write(run / f"raw/test.{lang}", ["one"])
    write(run / "langs.txt", ["de en sw"])
    scripts.run("multilingual/preprocess.sh", "--output", run, "--sample", "5", "--vocab-size", "3")
    assert lines_of(run / "sample/de.txt") == [f"de {n} de-en" for n in (0, 9, 18, 27, 36)]
    assert lines_of(run / "sample/sw.txt") == ["sw 0 de-sw", "sw 3 de-sw", "sw 2 en-sw", "sw 5 en-sw", "sw 8 en-sw"]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("misaligned", "local/valid.de has 3 lines, but local/valid.sw has 2"),
        ("not UTF-8", "local/train.en-sw.sw, line 2: not UTF-8"),
        ("no pair", "--local local has neither train.en-sw.en nor train.en"),
        ("one language", "--langs must name two languages at least, but is en"),
        ("hyphen", "--langs: fairseq needs languages of letters and _, but one is zh-Hans"),
        ("jobs", "--jobs must be a whole number above 0, but is two"),
        ("unknown language", "--langs: corpora.tsv has no text in xx; with --local DIR, you give the text"),
    ],
)
def test_what_cannot_be_used_is_refused(fault, problem, scripts):
    local = scripts.folder / "local"
    for lang in LANGS:
        for prefix in ("valid", "test", *(f"train.{pair}" for pair in PAIRS if lang in pair)):
            write(local / f"{prefix}.{lang}", [f"{lang} {n}" for n in range(3)])
    flags = ["--local", "local", "--langs", "de en sw"]
    if fault == "misaligned":
        write(local / "valid.sw", ["one", "two"])
    elif fault == "not UTF-8":
        (local / "train.en-sw.sw").write_bytes(b"one\n\xff\nthree\n")
    elif fault == "jobs":
        flags += ["--jobs", "two"]
    elif fault == "no pair":
        (local / "train.en-sw.en").unlink()
    else:
        flags = ["--langs", {"one language": "en en", "hyphen": "en zh-Hans", "unknown language": "en xx"}[fault]]
    refused = scripts.run("multilingual/download.sh", *flags, "--output", "run")
    assert refused.returncode == 2
    assert problem in refused.stderr.replace(f"{scripts.folder}/", "")
    assert not (scripts.folder / "run/raw/train.en-sw.sw").exists()
    assert scripts.run("multilingual/preprocess.sh", "--output", "run").returncode == 2
    refused = scripts.run("multilingual/preprocess.sh", "--sample", "0", "--output", "run")
    assert "--sample must be a whole number above 0, but is 0" in refused.stderr


def test_what_is_fetched_and_what_becomes_of_it(scripts):
    """Three pairs at a time; one that fails doesn't hold up the others, and the next call fetches it alone."""
    run, record, connected = (scripts.folder / name for name in ("run", "record", "connected"))
    scripts.add("mtdata", MTDATA)
    how = {"env": {"RECORD": str(record), "CONNECTED": str(connected)}}
    call = ["multilingual/download.sh", "--output", "run", "--langs", "ja en de", "--limit", "5", "--jobs", "3"]
    failed = scripts.run(*call, **how)
    assert failed.returncode == 1
    assert "started again, the script goes on with them" in failed.stderr
    assert lines_of(run / "raw/valid.ja") == [f"Flores-flores200_dev-1 {n} in jpn" for n in range(1, 998)]
    assert len(lines_of(run / "raw/test.de")) == 1012
    corpora = ("ted2020", "wikimatrix", "ccmatrix")
    joined = [f"OPUS-{name}-v1 {n} in jpn" for name in corpora for n in (1, 2)][:5]
    assert lines_of(run / "raw/train.en-ja.ja") == joined
    assert lines_of(run / "raw/train.en-ja.en") == [line.replace("jpn", "eng") for line in joined]
    assert not (run / "raw/train.de-ja.ja").exists()
    assert scripts.run("multilingual/preprocess.sh", "--output", "run").returncode == 2

    def call_of(languages, pair, names):
        return f"--no-pbar get --langs {languages} {names} --out {run}/mtdata/{pair} --fail --no-merge --compress"

    held_out = [
        call_of(languages, pair, f"--{split} Flores-flores200_{name}-1-{languages}")
        for languages, pair in (("deu-eng", "de-en"), ("eng-jpn", "en-ja"))
        for split, name in (("dev", "dev"), ("test", "devtest"))
    ]
    train = [
        call_of(languages, pair, " ".join(["--train", *(f"OPUS-{name}-v1-{languages}" for name in corpora)]))
        for languages, pair in (("deu-eng", "de-en"), ("eng-jpn", "en-ja"), ("deu-jpn", "de-ja"))
    ]
    assert lines_of(record)[:4] == held_out
    for line in (*held_out, *train):
        assert read_by_mtdata(line).fail_on_error
    assert sorted(lines_of(record)[4:]) == sorted(train)
    connected.touch()
    scripts.succeed(*call, **how)
    assert lines_of(record)[7:] == train[2:]
    assert len(lines_of(run / "raw/train.de-ja.ja")) == 5


def test_corpora_are_there_for_all_languages():
    """Every pair of the ten languages has CCMatrix, and every language FLORES."""
    rows = [line.split("\t") for line in lines_of(REPOSITORY / "scripts/multilingual/corpora.tsv")]
    assert rows[0] == ["split", "source", "target", "id"]
    langs = "de en es fr it ja ko pt sw zh".split()
    for source, target in itertools.combinations(langs, 2):
        names = [name for split, *pair, name in rows if split == "train" and pair == [source, target]]
        assert sum(name.startswith("OPUS-ccmatrix-v1-") for name in names) == 1
    for held_out in ("valid", "test"):
        pairs = [pair for split, *pair, _ in rows if split == held_out]
        assert all("en" in pair for pair in pairs)
        assert {lang for pair in pairs for lang in pair} == {*langs}
