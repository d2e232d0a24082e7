"""The commands of a table of the paper: in their order, with flags that the real parsers know."""

from pathlib import Path

import pytest
from scripts_for_tests import parse

from owf_fairseq import cli
from owf_fairseq.errors import InputError
from owf_fairseq.recipes.datasets import direction_flags
from owf_fairseq.recipes.tables import Recipe, Walk

ONE_WIDE = (
    "small small_shared_enc_no_dec small_shared_enc_no_dec_512 small_one_wide_ffn small_shared_enc_no_dec_2048".split()
)


def parsed(**what):
    """The commands, as ``owf`` reads them."""
    commands = Walk.of(Recipe(**what)).commands()
    return [command[0] for command in commands], [parse(["owf", *command]) for command in commands]


def test_a_table_from_training_to_the_report(tmp_path):
    run = tmp_path / "run"
    called, (train, first, *translate, evaluate, benchmark, report) = parsed(
        dataset="multi30k", run=str(run), training=("--max-update", "2"), cpu=True, jobs=2, sentences=4, speed="1"
    )
    assert called == ["train", "pairs", *["translate"] * 5, "evaluate", "benchmark", "report"]
    assert train.configs == [f"multi30k/{name}" for name in ONE_WIDE]
    assert (train.folder, train.jobs, train.others) == (str(run), 2, ["--max-update", "2", "--cpu"])
    assert (first.limit, first.input) == (4, [[f"{run}/raw/test.en", f"{run}/raw/test.de"]])
    assert [args.checkpoint for args in translate] == [f"{run}/{name}/checkpoint_best.pt" for name in ONE_WIDE]
    assert {args.input for args in translate} == {first.output[0]}
    assert evaluate.hypotheses == [f"{name}={args.output}" for name, args in zip(ONE_WIDE, translate, strict=True)]
    assert (evaluate.ref, evaluate.baseline, evaluate.metrics) == ([first.output[1]], "small", ["bleu", "chrf"])
    assert benchmark.others == [f"{name}={run}/{name}/checkpoint_best.pt" for name in ONE_WIDE]  # in one run
    assert (benchmark.sentences, benchmark.input) == (1, f"{run}/raw/test.en")
    assert report.results == [evaluate.json, benchmark.json]
    assert (report.table, report.pair, report.only_ours) == ("one_wide", "en-de", True)
    assert all(args.cpu for args in (*translate, evaluate, benchmark))


def test_what_ours_were_made_with_stands_under_the_table(tmp_path):
    for name, lines in (("raw/train.en", 300), ("raw/train.de", 300), ("data/shard-00/dict.en.txt", 196)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n" * lines)
    _, args = parsed(dataset="multi30k", run=str(tmp_path), training=("--max-update", "2"), sentences=4)
    assert args[-1].note == [
        "ours: 300 training pairs, 200 symbols, 2 updates of the training recipe of configs/multi30k, with --sentences "
        "4 --max-update 2"
    ]
    assert {one.data for one in args[2:7]} == {f"{tmp_path}/data/shard-00"}
    (tmp_path / "raw/notes.txt").write_text("the training text lacks A\nB has 5 pairs\n")
    _, args = parsed(dataset="multi30k", run=str(tmp_path))
    assert args[-1].note[1:] == ["the training text lacks A", "B has 5 pairs"]


def test_other_data_have_their_own_rows_and_metrics():
    called, args = parsed(dataset="wmt16_en_ro", fp32=True)
    assert (args[-1].table, args[-1].pair) == ("other", "en-ro")
    assert args[0].fp32
    assert args[0].folder == "runs/wmt16_en_ro"  # the config's
    _, args = parsed(dataset="quickstart", training=("--source-lang", "en", "--target-lang", "ja"))
    evaluate = args[-3]
    assert (evaluate.tokenize, evaluate.target_lang, evaluate.src) == (
        "char",
        "ja",
        "runs/quickstart-en-de/raw/test.en",
    )


def test_many_directions():
    called, args = parsed(
        dataset="multilingual", fp32=True, training=("--langs", "de,en,sw"), speed="de-sw", sentences=3
    )
    assert called == ["train", "pairs", "pairs", *["multilingual"] * 3, "evaluate", "multilingual", "report"]
    directions = "de-en,de-sw,en-de,en-sw,sw-de,sw-en"
    assert args[0].others == ["--langs", "de,en,sw", "--lang-pairs", directions]
    run = "runs/multilingual"
    assert [one.output for one in args[1:3]] == [
        [f"{run}/first-3/test.de", f"{run}/first-3/test.{lang}"] for lang in ("en", "sw")
    ]
    assert {(one.action, one.input) for one in args[3:6]} == {("translate", f"{run}/first-3")}
    assert args[6].directions
    assert args[6].metrics[:2] == ["spbleu", "chrf"]
    assert (args[7].direction, args[7].input) == ("de-sw", f"{run}/first-3/test.de")
    assert args[8].pair == "multi"


def test_directions_are_not_guessed_where_they_are_given():
    assert direction_flags(["--langs=a,b"]) == ["--lang-pairs", "a-b,b-a"]
    assert direction_flags(["--langs", "a,b", "--lang-pairs", "a-b"]) == []
    assert direction_flags(["--cpu"]) == []


def test_similarity_compares_models_that_began_differently():
    called, (rows, seeds, similarity) = parsed(
        dataset="multi30k", table="similarity", rows=("multi30k/small", "multi30k/small_no_dec"), seeds=(5, 6),
        sentences=30, capture="module",
    )  # fmt: skip
    assert called == ["train", "train", "similarity"]
    assert rows.configs == ["multi30k/small", "multi30k/small_no_dec"]
    assert (seeds.configs, seeds.seeds, seeds.folder) == (["multi30k/small"], [5, 6], rows.folder)
    run = rows.folder
    assert similarity.checkpoints == [
        f"{name}={run}/{name}/checkpoint_best.pt" for name in ("small_seed_5", "small_no_dec")
    ]
    assert similarity.benchmark == [f"{name}={run}/{name}/checkpoint_best.pt" for name in ("small", "small_seed_6")]
    assert (similarity.sentences, similarity.capture) == (30, "module")
    assert similarity.output == f"{run}/similarity-module"
    assert len(parsed(dataset="multi30k", table="similarity")[1][0].configs) == 9


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ({"dataset": "wmt23"}, "'wmt23', which is none of wmt22_en_de"),
        ({"table": "two_wide"}, "no row of table 'two_wide' for 'multi30k', which has"),
        ({"table": "other"}, "no row of table 'other' for 'multi30k', which has"),
        ({"sentences": 0}, "`--sentences` must be at least 1, but is 0"),
        ({"jobs": 0}, "`--jobs` must be at least 1, but is 0"),
        ({"speed": "fast"}, "`--speed` must be a whole number above 0, but is fast"),
        ({"training": ("--max-updates", "3")}, "`--max-updates`: fairseq-train has no such flag"),
        ({"dataset": "multilingual", "fp32": True, "training": ("--langs", "en,fr")}, "languages en fr, but is de-en"),
        ({"dataset": "multilingual", "fp32": True, "speed": "de-xx"}, "ko pt sw zh, but is de-xx"),
        ({"dataset": "wmt22_en_de", "cpu": True}, "half precision (fp16) needs a GPU, and `--cpu` is given"),
        (
            {"table": "similarity", "seeds": (2, 2)},
            "differ from each other and from that of the configs, 1, but is 2 2",
        ),
        ({"table": "similarity", "seeds": (3, 1)}, "`--seeds` must be two or more"),
        ({"table": "similarity", "capture": "all"}, "`--capture` must be sublayer or module, but is all"),
    ],
)
def test_what_cannot_be_done_is_refused_first(what, problem):
    with pytest.raises(InputError) as refused:
        Walk.of(Recipe(**{"dataset": "multi30k", **what}))
    assert problem in str(refused.value)


def test_command_walks_up_to_what_fails(tmp_path, monkeypatch, capsys):
    words = ["reproduce", "--dataset", "multi30k", "--run", str(tmp_path / "run"), "--rows", "multi30k/small", "--cpu"]
    assert cli.main([*words, "--dry-run"]) == 0
    commands = capsys.readouterr().out.splitlines()
    assert [command.split(" ")[1] for command in commands] == ["train", "translate", "evaluate", "benchmark", "report"]
    called, main = [], cli.main

    def fails_at_evaluation(command):
        called.append(command[0])
        return main(command) if command[0] == "reproduce" else 3 * (command[0] == "evaluate")

    monkeypatch.setattr(cli, "main", fails_at_evaluation)
    assert cli.main(words) == 3
    assert called == ["reproduce", "train", "translate", "evaluate"]
    assert not Path(tmp_path / "run").exists()
