"""`owf benchmark`: bad usage and bad input, all of it told before anything is loaded."""

import importlib.util

import pytest
import torch
from models_for_tests import checkpoint_of, make_model, parse

from owf_fairseq import cli
from owf_fairseq.speed import benchmark as measurement


def run(capsys, *arguments, status=2):
    assert cli.main(["benchmark", *map(str, arguments)]) == status
    return capsys.readouterr()


def save(path, arch):
    path.parent.mkdir(exist_ok=True)
    torch.save(checkpoint_of(make_model(arch), parse(arch)), path)
    return path


NO_MATPLOTLIB = [] if importlib.util.find_spec("matplotlib") else [["`--plot` needs matplotlib"]]


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ([], [["name one model or more"]]),
        (["owf_tinny", "no/such.pt"], [["no arch 'owf_tinny'", "did you mean owf_tiny"], ["no checkpoint no/such.pt"]]),
        (["owf_tiny", "owf_tiny"], [["two models have the name 'owf_tiny'", "first=owf_tiny"]]),
        (["a=owf_tiny", "a=owf_small"], [["two models have the name 'a'"]]),
        (["a="], [["'a=' names no model"]]),
        (
            ["owf_tiny", "--runs", "0", "--beam", "0", "--batch-sizes", "1,0", "--lengths", "0/3", "--threads", "-1"],
            [["`--beam`"], ["`--runs`"], ["`--threads`", "-1"], ["`--batch-sizes`", "0"], ["`--lengths`", "0/3"]],
        ),
        (["owf_tiny", "--fp16", "--cpu", "--sentences", "0"], [["`--sentences`"], ["`--fp16`", "`--cpu`"]]),
        (["owf_tiny", "a=owf_tiny", "--unpacked", "b"], [["`--unpacked` b", "owf_tiny, a"]]),
        (["owf_tiny", "a=owf_tiny", "--baseline", "b"], [["`--baseline` b is none of the models: owf_tiny, a"]]),
        (["--predict", "owf_tiny", "--by-size"], [["`--by-size` measures"]]),
        (["owf_tiny", "--vocab-size", "4"], [["`--vocab-size`", "at least 5"]]),
        (["owf_tiny", "--lengths", "2000/3"], [["`--lengths` 2000/3", "owf_tiny", "1023/1023"]]),
        (["owf_tiny", "--input", "no/text"], [["`--input`", "owf_tiny is an arch"], ["no/text can't be read"]]),
        (["owf_tiny", "--lr", "1", "--decoder-fnn", "none"], [["`--lr`"], ["`--decoder-fnn`", "`--decoder-ffn`"]]),
        (["owf_tiny", "--encoder-ffn", "cycle-7"], [["`--encoder-ffn`", "cycle-7"]]),
        (["CHECKPOINT", "--encoder-ffn", "shared"], [["flags of a model are for archs"]]),
        (["CHECKPOINT"], [["data"]]),
        (["owf_tiny", "--profile", "v100", "--peak-gflops", "3"], [["`--profile` is for"], ["`--peak-gflops` is for"]]),
        (["owf_tiny", "--batch-sizes", "2", "--max-tokens", "9"], [["`--batch-sizes`", "`--max-tokens`"]]),
        (["owf_tiny", "--max-tokens", "0", "--clients", "0"], [["`--max-tokens`"], ["`--clients`", "0"], ["fairseq"]]),
        (["owf_tiny", "--plot", "x.jpg"], [[".png"], ["several with `--batch-sizes`"], *NO_MATPLOTLIB]),
        (["owf_tiny", "--json", "FOLDER"], [["`--json`", "is a folder"]]),
        (["owf_tiny", "--json", "/dev/null/a.json"], [["`--json` /dev/null/a.json can't be written"]]),
        (["CHECKPOINT", "--json", "CHECKPOINT", "--overwrite", "--cpu"], [["is the input"], ["data"]]),
        (
            ["CHECKPOINT", "--input", __file__, "--lengths", "9/9", "--vocab-size", "100"],
            [["`--lengths`", "`--input`", "one of them"], ["`--vocab-size`", "no arch"], ["data"]],
        ),
        (["owf_tiny", "--data", "FOLDER"], [["`--data`", "no checkpoint"]]),
        (["owf_tiny", "--segmentation", "none"], [["`--segmentation`", "`--input`, which is not given"]]),
        (["--predict", "owf_tiny", "--calibrate", "--threads", "0"], [["`--threads`", "0"]]),
        (["--predict", "owf_tinny", "--calibrate", "--beam", "-1"], [["`--beam`", "-1"], ["no arch 'owf_tinny'"]]),
        (
            ["--predict", "owf_tiny", "--peak-gflops", "nan", "--bandwidth-gbs", "inf"],
            [["`--peak-gflops`", "nan"], ["`--bandwidth-gbs`", "inf"]],
        ),
        (
            ["--predict", "owf_tiny", "--runs", "3", "--memory", "--unpacked", "--beam", "0"],
            [["`--runs` measures"], ["`--unpacked` measures"], ["`--memory` measures"], ["`--beam`"]],
        ),
        (["--predict", "CHECKPOINT"], [["is a checkpoint", "`owf inspect`"]]),
        (["--predict", "owf_tiny", "--encoder-ffn", "cycle-7"], [["`--encoder-ffn`", "cycle-7"]]),
        (["--predict", "owf_tiny", "--profile", "a100"], [["`--profile`", "v100, v100-roofline", "a100"]]),
        (["--predict", "owf_tiny", "--peak-gflops", "-3"], [["`--peak-gflops`", "-3"], ["give both"]]),
        (["--predict", "owf_tiny", "--profile", "v100", "--calibrate"], [["`--profile`, `--calibrate`", "one"]]),
        (["--predict", "--paper", "owf_tiny", "--beam", "3"], [["`--paper`", "owf_tiny --beam"]]),
    ],
)  # fmt: skip
def test_bad_usage_tells_every_problem_once(capsys, tmp_path, arguments, problems):
    for number, argument in enumerate(arguments):
        if argument == "CHECKPOINT":
            arguments[number] = save(tmp_path / "run" / "a.pt", "owf_tiny")
        elif argument == "FOLDER":
            arguments[number] = tmp_path
    captured = run(capsys, *arguments)
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert len(lines) == len(problems), captured.err
    for line, texts in zip(lines, problems, strict=True):
        assert line.startswith("owf benchmark: error: ")
        assert all(text in line for text in texts), line


@pytest.mark.parametrize("wrong", [["--lengths", "26"], ["--lengths", "26/30", "owf_tiny"], ["--batch-sizes", "1;2"]])
def test_malformed_numbers(wrong, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["benchmark", "owf_tiny", *wrong])
    assert end.value.code == 2
    assert "is not like" in capsys.readouterr().err


def test_nothing_is_loaded_before_all_is_checked(capsys, monkeypatch):
    monkeypatch.setattr(measurement, "benchmark", lambda *arguments: pytest.fail("it measures"))
    run(capsys, "owf_tiny", "no/such.pt")


def test_text_needs_a_segmentation(trained, capsys, tmp_path):
    """The toy data of this checkpoint were made by fairseq-preprocess, which records none."""
    text = tmp_path / "text"
    text.write_text("w1 w2\n")
    err = run(capsys, trained / "checkpoint_last.pt", "--input", text, "--cpu").err
    assert "doesn't say how its text was cut into pieces" in err
    more = ["--segmentation", "none", "--runs", "1", "--warmup", "0"]
    out = run(capsys, trained / "checkpoint_last.pt", "--input", text, "--cpu", *more, status=0).out
    assert "\n2/" in out  # the two pieces of the line


def test_text_without_a_usable_line(copier, capsys, tmp_path):
    text = tmp_path / "text"
    text.write_text("\n   \n")
    assert "has no line" in run(capsys, copier, "--input", text, "--cpu").err
