"""scripts/wmt16_en_ro from end to end on real sentences, with small models and few updates; commas below."""

import json
import unicodedata

import pytest
from scripts_for_tests import SHARED_DATA, Scripts, lines_of, read_by_mtdata

from owf_fairseq.data.segmentation import Segmentation

DATA = SHARED_DATA / "newstest2016-en-ro"
PARTS = {"train": (0, 300), "valid": (300, 320), "test": (320, 350)}
CEDILLAS = str.maketrans("ȘșȚț", "ŞşŢţ")
QUICK = "--fp32 --cpu --num-workers 0 --max-update 2 --update-freq 1 --max-tokens 800 --validate-interval-updates 2"

MTDATA = """#!/bin/bash
printf '%s\\n' "$*" >>"$RECORD"
while [ $# -gt 0 ]; do
  case $1 in --out) out=$2 ;; OPUS-*) names="$names $1" ;; esac
  shift
done
mkdir -p "$out/train-parts"
for name in $names; do
  for lang in eng ron; do printf '%s ţ\\n\\n' "$name in $lang" | gzip >"$out/train-parts/$name.$lang.gz"; done
  [ -e "$CONNECTED" ] || exit 1
done
"""
SACREBLEU = """#!/bin/bash
printf '%s\\n' "$*" >>"$RECORD"
for n in {1..1999}; do echo "$2 $6 $n ş"; done
"""


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


def write(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


@pytest.fixture
def local(tmp_path):
    """A folder with three sets, whose Romanian has cedillas, the first lines aside: corpora are mixed."""
    if not DATA.is_dir():
        pytest.skip(f"no newstest2016 in {DATA}")
    for lang in ("en", "ro"):
        lines = lines_of(DATA / f"newstest2016.{lang}")
        for split, (start, end) in PARTS.items():
            text = [line.translate(CEDILLAS) if n else line for n, line in enumerate(lines[start:end])]
            write(tmp_path / f"local/{split}.{lang}", text)
    return tmp_path / "local"


def real(lang, split):
    return lines_of(DATA / f"newstest2016.{lang}")[slice(*PARTS[split])]


def test_from_the_text_to_the_table(scripts, local):
    """Real results of each step; done a second time, a step does nothing."""
    run = scripts.folder / "run"

    def step(name, *arguments):
        """Runs a script; returns which subcommands of ``owf`` it called, and what it printed."""
        done = scripts.succeed(f"wmt16_en_ro/{name}.sh", *arguments, "--output", "run")
        return [command[0] for command in scripts.commands], done.stdout

    assert step("download", "--local", local, "--limit", "280")[0] == ["pairs"] * 3
    for split in PARTS:
        for lang in ("en", "ro"):
            assert lines_of(run / f"raw/{split}.{lang}") == real(lang, split)[: 280 if split == "train" else None]
    assert lines_of(run / "original/train.ro") == lines_of(local / "train.ro")[:280]
    assert "ş" in (run / "original/train.ro").read_text()
    assert step("download", "--local", local, "--limit", "280")[0] == []

    assert step("preprocess", "--vocab-size", "400", "--workers", "1")[0] == ["prepare"]
    segmentation = Segmentation.load(run / "data")
    pieces = {symbol.split(" ")[0] for symbol in lines_of(run / "data/dict.ro.txt")}
    assert pieces == {symbol.split(" ")[0] for symbol in lines_of(run / "data/dict.en.txt")}
    assert len(lines_of(run / "data/bpe.codes")) == 401  # subword-nmt's version, and the merges
    assert {"ș", "ț"} <= {letter for piece in pieces for letter in piece}
    assert not {"ş", "ţ"} & {letter for piece in pieces for letter in piece}
    assert segmentation.encode('A well-known state\'s "law".').split().count("&apos;s") == 1
    assert len(lines_of(run / "data/encoded/train.ro")) == 280
    assert step("preprocess", "--vocab-size", "400", "--workers", "1")[0] == []

    assert step("train", "base", *QUICK.split(), "--arch", "owf_tiny")[0] == ["train"]
    assert step("train", "base", *QUICK.split(), "--arch", "owf_tiny")[0] == []
    assert step("train", "base_one_wide_ffn", *QUICK.split(), "--arch", "owf_tiny_one_wide_ffn")[0] == ["train"]
    models = ["base", "base_one_wide_ffn"]
    search = "--cpu --beam 1 --max-len-a 0 --max-len-b 9".split()
    assert step("generate", *models, *search)[0] == ["translate", "translate"]
    assert step("generate", *models, *search)[0] == []
    for name in models:
        assert len(lines_of(run / name / "test.ro")) == 30

    commands, printed = step("evaluate", *models, "--samples", "20")
    assert commands == ["evaluate", "report"]
    scores = json.loads((run / "scores.json").read_text())
    assert [system["name"] for system in scores["systems"]] == models
    assert set(scores["metrics"]) == {"bleu", "chrf"}
    assert scores["target_language"] == "ro"
    assert "COMET is not installed" in printed
    assert (run / "table.md").read_text() in printed
    # the reference has no cedilla that a right translation could miss
    write(run / "base/test.ro", real("ro", "test"))
    step("evaluate", "base")
    assert json.loads((run / "scores.json").read_text())["systems"][0]["scores"]["bleu"]["score"] == pytest.approx(100)


def test_cedillas_become_commas_below_in_romanian_alone(scripts):
    """Literally: both cases of both letters, as one character and as two, in the three sets; nothing else changes."""
    before = "Ştiinţa şi ŢĂRILE, ţară: ăâîĂÂÎ ç Ģ ș ț Ș Ț"
    after = "Știința și ȚĂRILE, țară: ăâîĂÂÎ ç Ģ ș ț Ș Ț"
    apart = "S\u0327tiint\u0327a s\u0327i T\u0327a\u0306rile, c\u0327"
    assert unicodedata.normalize("NFC", apart) == "Ştiinţa şi Ţările, ç"
    for split in PARTS:
        write(scripts.folder / f"local/{split}.en", ["Mr Şahin, Ţepeş", "two", "three"])
        write(scripts.folder / f"local/{split}.ro", [before, apart, "trei"])
    scripts.succeed("wmt16_en_ro/download.sh", "--local", "local", "--output", "run", env={"LC_ALL": "C"})
    for split in PARTS:
        romanian = lines_of(scripts.folder / f"run/raw/{split}.ro")
        assert romanian == [after, "Știința și Ța\u0306rile, c\u0327", "trei"]
        assert lines_of(scripts.folder / f"run/raw/{split}.en") == ["Mr Şahin, Ţepeş", "two", "three"]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("misaligned", "local/train.en has 3 lines, but local/train.ro has 2"),
        ("not UTF-8", "local/train.ro, line 2: not UTF-8"),
        ("missing", "neither local/train.ro nor local/train.ro.gz is there"),
    ],
)
def test_damaged_text_is_refused(fault, problem, scripts):
    for split in PARTS:
        for lang in ("en", "ro"):
            write(scripts.folder / f"local/{split}.{lang}", ["one", "two", "three"])
    faulty = scripts.folder / "local/train.ro"
    if fault == "missing":
        faulty.unlink()
    else:
        faulty.write_bytes(b"unu\ndoi\n" if fault == "misaligned" else "unu\nțară\ntrei\n".encode("iso8859_16"))
    refused = scripts.run("wmt16_en_ro/download.sh", "--local", "local", "--output", "run")
    assert refused.returncode == 2
    assert problem in refused.stderr.replace(f"{scripts.folder}/", "")
    assert not (scripts.folder / "run/raw").exists()
    # what is put right is taken
    write(faulty, ["unu", "doi", "trei"])
    scripts.succeed("wmt16_en_ro/download.sh", "--local", "local", "--output", "run")
    assert lines_of(scripts.folder / "run/raw/train.ro") == ["unu", "doi", "trei"]


def test_what_is_fetched_and_what_becomes_of_it(scripts):
    """The test sets through sacreBLEU, the corpora through mtdata; after a broken connection it goes on."""
    run, record, connected = (scripts.folder / name for name in ("run", "record", "connected"))
    scripts.add("sacrebleu", SACREBLEU)
    scripts.add("mtdata", MTDATA)
    how = {"env": {"RECORD": str(record), "CONNECTED": str(connected)}}
    assert scripts.run("wmt16_en_ro/download.sh", "--output", "run", **how).returncode == 1
    assert not (run / "raw/train.en").exists()
    sides = ["wmt16/dev src", "wmt16/dev ref", "wmt16 src", "wmt16 ref"]
    sets = ["--test-set {} --language-pair en-ro --echo {}".format(*side.split()) for side in sides]
    corpora = "--langs eng-ron --train OPUS-europarl-v8-eng-ron OPUS-setimes-v2-eng-ron"
    get = f"--no-pbar get {corpora} --out {run}/mtdata --fail --no-merge --compress"
    assert lines_of(record) == [*sets, get]
    assert [str(name) for name in read_by_mtdata(get).train_dids] == [
        "OPUS-europarl-v8-eng-ron",
        "OPUS-setimes-v2-eng-ron",
    ]
    assert read_by_mtdata(get).fail_on_error
    assert lines_of(run / "raw/valid.ro")[-1] == "wmt16/dev ref 1999 ș"
    assert lines_of(run / "raw/test.en")[-1] == "wmt16 src 1999 ş"
    connected.touch()
    scripts.succeed("wmt16_en_ro/download.sh", "--output", "run", **how)
    assert lines_of(record) == [*sets, get, get]
    assert lines_of(run / "raw/train.en") == [f"OPUS-{name}-eng-ron in eng ţ" for name in ("europarl-v8", "setimes-v2")]
    assert lines_of(run / "raw/train.ro") == [f"OPUS-{name}-eng-ron in ron ț" for name in ("europarl-v8", "setimes-v2")]
    scripts.succeed("wmt16_en_ro/download.sh", "--output", "run", **how)
    assert scripts.commands == []
