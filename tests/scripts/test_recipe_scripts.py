"""The scripts of the datasets: the commands that they run, which the real parsers read."""

import re

import pytest
from fairseq_for_tests import REPOSITORY
from scripts_for_tests import Scripts, load_script, parse

from owf_fairseq.training.several import members

DATASETS = {
    "multi30k": ("en", "de", "small"),
    "quickstart": ("en", "de", "small"),
    "wmt22_en_de": ("en", "de", "big"),
    "wmt16_en_ro": ("en", "ro", "base"),
}


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


def planned(command):
    """The trainings that a command makes."""
    args = parse(command)
    return members(args.configs, args.others, args.folder, args.seeds, args.data, fp32=True)


@pytest.mark.parametrize("dataset", DATASETS)
def test_from_data_to_table(dataset, scripts):
    """Each step reads what the one before it writes; the user's own flags come last, and win."""
    source, target, row = DATASETS[dataset]
    run = scripts.run
    (prepare,) = scripts.commands(f"{dataset}/preprocess.sh", "--vocab-size", "99")
    args = parse(prepare)
    assert (args.train, args.langs, args.output) == (f"{run}/raw/train", f"{source}-{target}", f"{run}/data")
    assert (args.valid, args.test, args.vocab_size) == (f"{run}/raw/valid", f"{run}/raw/test", 99)

    configs = [f"{dataset}/{row}", f"{dataset}/{row}_one_wide_ffn"]
    (train,) = scripts.commands(f"{dataset}/train.sh", *configs, "--max-update", "3")
    args = parse(train)
    assert (args.configs, args.folder) == (configs, str(run))
    assert [one.training.args.max_update for one in planned(train)] == [3, 3]

    both = [row, f"{row}_one_wide_ffn"]
    translations = [parse(one) for one in scripts.commands(f"{dataset}/generate.sh", *configs, "--beam", "1")]
    assert [args.checkpoint for args in translations] == [f"{run}/{name}/checkpoint_best.pt" for name in both]
    assert {(args.input, args.beam) for args in translations} == {(f"{run}/raw/test.{source}", 1)}
    (other,) = scripts.commands(f"{dataset}/generate.sh", row, CHECKPOINT="checkpoint_last.pt", TEST_SET="mine/x")
    assert parse(other).checkpoint == f"{run}/{row}/checkpoint_last.pt"
    assert parse(other).input == f"mine/x.{source}"

    evaluate, benchmark, report = scripts.commands(f"{dataset}/evaluate.sh", *configs, "--samples", "7", SPEED="9")
    args = parse(evaluate)
    made = [f"{name}={one.output}" for name, one in zip(both, translations, strict=True)]
    assert (args.hypotheses, args.samples) == (made, 7)
    assert args.by_size or args.baseline == [row]
    assert (args.ref, args.src) == ([f"{run}/raw/test.{target}"], f"{run}/raw/test.{source}")
    args = parse(benchmark)
    assert args.others == [f"{name}={one.checkpoint}" for name, one in zip(both, translations, strict=True)]
    assert (args.sentences, args.json) == (9, f"{run}/speed.json")
    args = parse(report)
    assert args.results == [f"{run}/scores.json", f"{run}/speed.json"]
    assert args.pair == ("en-ro" if target == "ro" else "en-de")

    half = ["--fp16", "--cpu", "--samples", "7"]
    evaluate, benchmark, _ = scripts.commands(f"{dataset}/evaluate.sh", *configs, *half, SPEED="all")
    assert (parse(evaluate).samples, parse(evaluate).cpu) == (7, True)
    assert (parse(benchmark).fp16, parse(benchmark).cpu, parse(benchmark).sentences) == (True, True, None)
    *translations, last = scripts.commands(f"{dataset}/generate.sh", *configs, "--fp16")
    assert parse(last).fp16

    evaluate, report = scripts.commands(f"{dataset}/evaluate.sh", row, "--metrics", "bleu", TABLE="dropping")
    assert parse(evaluate).metrics == ["bleu"]
    assert (parse(report).table, parse(report).results) == ("dropping", [f"{run}/scores.json"])


@pytest.mark.parametrize("dataset", [*DATASETS, "multilingual"])
def test_without_a_model_nothing_is_done(dataset, scripts):
    for step in ("generate", "evaluate"):
        refused = scripts.call(f"{dataset}/{step}.sh", "--beam", "1")
        assert refused.returncode == 2
        assert "name at least one model" in refused.stderr
    assert not scripts.record.exists()


def test_a_program_that_is_missing_is_named(scripts):
    (scripts.folder / "venv/bin/owf").unlink()
    failed = scripts.call("multi30k/train.sh", "multi30k/small")
    assert failed.returncode == 1
    assert f"owf is neither in {scripts.folder}/venv/bin nor on the PATH: run pip install" in failed.stderr


def test_multi30k_is_fetched_whole(scripts):
    scripts.add(
        "curl",
        '#!/bin/bash\nwhile [ $# -gt 1 ]; do [ "$1" != --output ] || out=$2; shift; done\n'
        'echo x >"$out"\n[[ $1 != *val.de.gz || -e connected ]]\n',
    )
    failed = scripts.call("multi30k/download.sh")
    assert failed.returncode == 1
    assert "val.de.gz can't be fetched" in failed.stderr
    fetched = {path.name for path in (scripts.run / "download").iterdir()}
    assert fetched == {"train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz.part"}
    (scripts.folder / "connected").touch()
    commands = scripts.commands("multi30k/download.sh", "--limit", "5")
    assert [(parse(one).lines, parse(one).limit) for one in commands] == [(29000, 5), (1014, None), (1000, None)]
    assert parse(commands[1]).input == [[f"{scripts.run}/download/val.{lang}.gz" for lang in ("en", "de")]]


@pytest.mark.parametrize("dataset", ["multi30k", "wmt22_en_de", "wmt16_en_ro"])
def test_text_from_a_folder(dataset, scripts):
    """Plain or gzipped; nothing is fetched."""
    local = scripts.folder / "local"
    local.mkdir()
    (local / "train.en").touch()
    (local / "test.refB.de.gz").touch()
    for split in ("train", "valid", "test"):
        (scripts.run / "original").mkdir(parents=True, exist_ok=True)
        (scripts.run / "original" / f"{split}.en").touch()
    commands = scripts.commands(f"{dataset}/download.sh", "--limit", "5", LOCAL=local)
    pairs = [parse(command) for command in commands if command[0] == "owf"]
    assert not [command for command in commands if "fetch" in command[1]]
    assert {command[0] for command in commands} <= {"owf", "python"}
    train = next(args for args in pairs if args.output[0].endswith("/train.en"))
    assert train.input == [[f"{local}/train.en", f"{local}/train.{DATASETS[dataset][1]}.gz"]]
    assert train.limit == 5
    outputs = {output.rsplit("/", 1)[1] for args in pairs for output in args.output}
    assert {f"{split}.en" for split in ("train", "valid", "test")} <= outputs
    assert ("test.refB.de" in outputs) == (dataset == "wmt22_en_de")
    if dataset != "multi30k":
        assert (train.drop_empty, train.max_words) == (True, 250)


@pytest.mark.parametrize(("dataset", "corpora"), [("wmt22_en_de", 13), ("wmt16_en_ro", 2)])
def test_text_from_the_network(dataset, corpora, scripts, monkeypatch):
    """Through mtdata, joined in the order of the table; through sacreBLEU the other sets, each side once."""
    (scripts.run / "original").mkdir(parents=True)
    for split in ("train", "valid", "test"):
        (scripts.run / "original" / f"{split}.en").touch()
    commands = scripts.commands(f"{dataset}/download.sh", "--limit", "5", JOBS="3")
    (fetch,) = [command for command in commands if command[1].endswith("/fetch_corpora.py")]
    made, fetched = [], []
    monkeypatch.setenv("MTDATA", "cache")
    monkeypatch.setattr("owf_fairseq.data.corpora.prefetch", lambda *words: fetched.append(words) or {})
    script = load_script("fetch_corpora.py")
    assert script.main(fetch[2:], lambda command: made.append(command) or command[0] == "mtdata") == 1
    mtdata, train = map(parse, made)
    assert len(fetched[0][0]) == corpora
    assert (len(mtdata.train_dids), mtdata.fail_on_error, mtdata.merge_train, mtdata.compress) == (
        corpora,
        True,
        False,
        True,
    )
    assert (train.limit, train.drop_empty, train.max_words) == (5, True, 250)
    assert [file.rsplit("/", 1)[1] for file in train.output] == [f"train.{lang}" for lang in DATASETS[dataset][:2]]
    names = [str(name) for name in mtdata.train_dids]
    assert [re.sub(r".*/|\.eng\.gz", "", source) for source, _ in train.input] == names
    assert all(re.search(r"/train-parts/.*\.(deu|ron)\.gz$", target) for _, target in train.input)
    sets = [command for command in commands if command[0] == "sacrebleu"]
    assert len(sets) == {"wmt22_en_de": 7, "wmt16_en_ro": 4}[dataset]
    assert not [one for one in scripts.commands(f"{dataset}/download.sh") if one[0] == "sacrebleu"]  # they are there


def test_a_set_that_breaks_off_is_not_there(scripts):
    failed = scripts.call("wmt16_en_ro/download.sh", FAIL="sacrebleu")
    assert failed.returncode != 0
    assert [path.name for path in (scripts.run / "sacrebleu").iterdir()] == ["valid.en.part"]


def test_quickstart_in_other_languages(scripts):
    how = {"SOURCE": "en", "TARGET": "ja", "LOCAL": "wheels"}
    (command,) = scripts.commands("quickstart/download.sh", "--limit", "7", **how)
    assert command[0] == "python"
    corpus = load_script("quickstart/corpus.py")
    assert corpus.main(command[2:]) == 2  # there is no wheel, but the flags are its own
    (train,) = scripts.commands("quickstart/train.sh", "quickstart/small", **how)
    (one,) = planned(train)
    assert (one.training.args.source_lang, one.training.args.target_lang) == ("en", "ja")
    evaluate, _ = scripts.commands("quickstart/evaluate.sh", "small", **how)
    assert (parse(evaluate).tokenize, parse(evaluate).target_lang) == ("char", "ja")


def test_multilingual(scripts):
    run = scripts.run
    download, *_ = scripts.commands("multilingual/download.sh", "--limit", "7", LANGUAGES="de en sw", LOCAL="x")
    assert download[1].endswith("scripts/multilingual/download.py")
    assert download[2:] == ["--run", str(run), "--langs", "de en sw", "--local", "x", "--limit", "7"]
    for step in ("preprocess", "train"):
        refused = scripts.call(f"multilingual/{step}.sh", "multilingual/big")
        assert (refused.returncode, "run scripts/multilingual/download.sh first" in refused.stderr) == (2, True)
    run.mkdir()
    for name, text in (("langs", "de,en,sw"), ("pairs", "de-en\nde-sw"), ("directions", "de-en,en-de")):
        (run / f"{name}.txt").write_text(f"{text}\n")
    (run / "sample").mkdir()
    (run / "sample/de.txt").touch()
    (run / "sample/en.txt").touch()
    sample, first, second, join = scripts.commands(
        "multilingual/preprocess.sh", "--vocab-size", "500", SHARDS="2", SAMPLE="70"
    )
    assert sample[2:] == ["--raw", f"{run}/raw", "--output", f"{run}/sample", "--lines", "70"]
    args = parse(first)
    assert args.segmentation_text == [f"{run}/sample/de.txt", f"{run}/sample/en.txt"]
    assert (args.vocab_size, args.shards, args.test) == (500, 2, f"{run}/test/test")
    args = parse(second)
    assert (args.like, args.langs, args.output) == (f"{run}/pairs/de-en", "de-sw", f"{run}/pairs/de-sw")
    assert (args.vocab_size, args.shards) == (None, 2)
    assert join[2:] == [f"{run}/pairs", f"{run}/data"]
    (train,) = scripts.commands("multilingual/train.sh", "multilingual/big", "--cpu")
    (one,) = planned(train)
    assert (one.training.args.langs, one.training.args.lang_pairs) == (["de", "en", "sw"], "de-en,en-de")
    (translate,) = scripts.commands("multilingual/generate.sh", "multilingual/big", "--directions", "de-en")
    args = parse(translate)
    assert (args.input, args.output, args.directions) == (f"{run}/test", f"{run}/big/test", ["de-en"])
    evaluate, benchmark, report = scripts.commands(
        "multilingual/evaluate.sh", "multilingual/big", "--fp16", SPEED="all"
    )
    args = parse(evaluate)
    assert (args.hypotheses, args.ref, args.directions) == ([f"big={run}/big/test"], [f"{run}/test"], True)
    args = parse(benchmark)
    assert (args.input, args.direction, args.sentences, args.fp16) == (f"{run}/test/test.de", "de-en", None, True)
    _, benchmark, _ = scripts.commands("multilingual/evaluate.sh", "multilingual/big", SPEED="3", DIRECTION="en-sw")
    args = parse(benchmark)
    assert (args.input, args.direction, args.sentences, args.fp16) == (f"{run}/test/test.en", "en-sw", 3, False)
    assert (parse(report).pair, parse(report).table) == ("multi", "other")


def test_a_table_from_the_text(scripts):
    """Checked first; then the dataset's scripts, and the walk with the same words."""
    words = ["--table", "one_wide", "--dataset", "multi30k", "--max-update", "2"]
    how = {"LOCAL": "x", "LIMIT": "300", "VOCAB_SIZE": "200"}
    check, *text, prepare, walk = scripts.commands("reproduce_tables.sh", *words, **how)
    assert walk == ["owf", "reproduce", *words, "--run", str(scripts.run)]
    assert check == [*walk, "--dry-run"]
    assert parse(walk).dataset == "multi30k"
    assert [parse(one).limit for one in text] == [300, None, None]
    assert parse(prepare).vocab_size == 200
    assert scripts.commands("reproduce_tables.sh", *words, PREPARED="yes") == [check, walk]
    large = ["--table", "one_wide", "--dataset", "wmt22_en_de"]
    commands = scripts.commands("reproduce_tables.sh", *large, WITHOUT="Tilde-* A")
    (fetch,) = (command for command in commands if command[1].endswith("/fetch_corpora.py"))
    assert fetch[-2:] == ["--without=Tilde-*", "--without=A"]
    assert len(scripts.commands("reproduce_tables.sh", *words, "--dry-run")) == 2
    refused = scripts.call("reproduce_tables.sh", *words, FAIL="owf")
    assert refused.returncode != 0
    assert len(scripts.record.read_text().splitlines()) == 1


def test_a_table_in_other_languages(scripts):
    *_, walk = scripts.commands("reproduce_tables.sh", "--dataset", "quickstart", PREPARED="yes", TARGET="ro")
    assert parse(walk).others == ["--source-lang", "en", "--target-lang", "ro"]
    *_, walk = scripts.commands("reproduce_tables.sh", "--dataset", "multilingual", PREPARED="yes", LANGUAGES="sw de")
    assert parse(walk).others == ["--langs", "de,sw"]


def test_similarity_is_a_table(scripts):
    *_, walk = scripts.commands("similarity.sh", "--dataset", "multi30k", "--seeds", "5", "6", PREPARED="yes")
    args = parse(walk)
    assert (args.table, args.dataset, args.seeds) == ("similarity", "multi30k", [5, 6])


def test_quickstart_shows_what_it_does(scripts):
    """With the default models, and with what a trial asks for."""
    scripts.pretend_installed()
    out = scripts.folder / "out"
    (out / "raw").mkdir(parents=True)
    for name in ("raw/test.en", "raw/test.ro", "raw/train.en", "owf_small/test.ro", "owf_decoder_only_small/test.ro"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("a\nb\n")
    words = ["--smoke", "--langs", "en-ro", "--archs", "owf_small owf_decoder_only_small", "--output", out]
    commands = scripts.commands("quickstart.sh", *words, LOCAL="wheels")
    called = [command[1] for command in commands if command[0] == "owf"]
    assert called == ["train", "prepare", "train", "translate", "translate", "evaluate", "benchmark", "report"]
    train = parse(commands[0])
    assert train.dry_run
    assert [path.rsplit("/", 1)[1] for path in train.configs] == ["owf_small.yaml", "owf_decoder_only_small.yaml"]
    small, decoder_only = planned(commands[0])
    assert (small.training.args.arch, small.training.args.max_update) == ("owf_small", 6)
    assert (small.training.args.target_lang, small.training.args.lr) == ("ro", [0.002])
    assert small.training.args.save_dir == f"{out}/owf_small"
    assert decoder_only.training.args.arch == "owf_decoder_only_small"
    assert [parse(one).output for one in commands if one[1] == "translate"] == [
        f"{out}/{arch}/test.ro" for arch in ("owf_small", "owf_decoder_only_small")
    ]


def test_there_is_little_bash():
    files = [*(REPOSITORY / "scripts").rglob("*.sh"), REPOSITORY / ".ci/run"]
    assert sum(len(file.read_text().splitlines()) for file in files) <= 1100
