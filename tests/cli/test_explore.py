"""`owf explore` on the command line: what it prints and writes, that others agree with it, and what it refuses."""

import json
import re

import pytest
import yaml

from owf_fairseq import cli
from owf_fairseq.cost_model.device_profiles import DeviceProfile
from owf_fairseq.speed import calibration
from owf_fairseq.speed.calibration import Calibration
from owf_fairseq.training.config import read_config
from owf_fairseq.training.run import plan

SMALL = ("small", "--vocab-size", "4000", "--multiple-of", "8")
"""Two layers a stack: few layouts."""


def run(capsys, *arguments, status=0):
    assert cli.main(["explore", *map(str, arguments)]) == status
    return capsys.readouterr()


def explored(capsys, path, *arguments):
    run(capsys, *arguments, "--json", path, "--overwrite")
    return json.loads(path.read_text())


def test_the_table(capsys):
    out = run(capsys, "big", "--params", "228M", "--top", "3").out
    assert re.search(r"--encoder-ffn shared --encoder-ffn-embed-dim 49152 --decoder-ffn none .* 36\.5 +137\.5", out)
    assert "on the front (*)" in out
    markdown = run(capsys, *SMALL, "--markdown", "--batch-sizes", "1,32").out
    assert markdown.count("| rank | owf_small with |") == 2


@pytest.mark.parametrize("size", ["small", "decoder_only_tiny"])
def test_params_and_predict_agree_to_the_last_digit(capsys, tmp_path, size):
    more = ("--batch-sizes", "1,8", "--lengths", "11/13", "--beam", "3")
    data = explored(
        capsys, tmp_path / "x.json", size, *SMALL[1:], *more, "--device", "cpu", "--top", 2, "--family", "stacks,taper"
    )
    assert data["profile"]["name"] == "cpu"
    for line in data["workloads"][0]["layouts"][:3]:
        assert cli.main(["params", line["arch"], "--vocab-size", "4000", "--json", *line["flags"]]) == 0
        [counted] = json.loads(capsys.readouterr().out)["archs"]
        assert counted["total"] == line["parameters"]
        path = tmp_path / "p.json"
        words = [line["arch"], "--vocab-size", "4000", *more, "--profile", "cpu", "--json", str(path), *line["flags"]]
        assert cli.main(["benchmark", "--predict", *words]) == 0
        capsys.readouterr()
        for predicted, workload in zip(json.loads(path.read_text())["predictions"], data["workloads"], strict=True):
            same = [one for one in workload["layouts"] if one["flags"] == line["flags"]]
            for one in same:
                assert (predicted["tokens_per_s"], predicted["flops"]) == (one["tokens_per_s"], one["flops"])
        assert predicted["batch_size"] == 8


def test_a_calibrated_device(capsys, tmp_path, monkeypatch):
    asked = []

    def calibrate(device, fp16, rows):
        asked.append((device.type, fp16, rows))
        return Calibration(DeviceProfile("this machine", 1e11, 1e11, 1e10, source="x"), rows, 1e10, "float32")

    monkeypatch.setattr(calibration, "calibrate", calibrate)
    data = explored(capsys, tmp_path / "x.json", *SMALL, "--device", "calibrated", "--cpu")
    assert data["profile"]["name"] == "this machine"
    assert asked == [("cpu", False, 5)]


def test_configs_that_train(capsys, tmp_path):
    folder = tmp_path / "configs"
    arguments = (*SMALL, "--family", "middle,taper,per-layer,attention", "--all")
    data = explored(capsys, tmp_path / "x.json", *arguments, "--write-configs", folder)
    files = sorted(folder.glob("*.yaml"))
    lines = data["workloads"][0]["layouts"]
    assert len(files) == len(lines) == data["matching"]
    by_flags = {}
    for file in files:
        settings = yaml.load(file.read_text(), yaml.BaseLoader)
        assert settings.pop("save-dir") == f"runs/explore/{file.stem}"
        flags = {f"--{name}": value for name, value in settings.items() if name not in ("base", "arch")}
        by_flags[tuple(sorted(flags.items()))] = file
    printed = {tuple(sorted(_by_name(line["flags"]).items())) for line in lines}
    assert printed == set(by_flags)
    assert read_config(files[0])["data"].value == "runs/quickstart-en-de/data"
    chosen = [key for key in by_flags if any(value.startswith("-,") for _, value in key)][:1]
    chosen += [key for key in by_flags if any("-ffn-widths" in name for name, _ in key)][:1]
    for key in chosen:
        args = plan(str(by_flags[key]), ["--cpu"], environment={}).args
        assert args.arch == "owf_small"
        for name, value in key:
            assert str(getattr(args, name.removeprefix("--").replace("-", "_"))) == value
    assert "parameters with a vocabulary of 4,000" in files[0].read_text()


def _by_name(flags):
    """Flags and their values, ``true`` for a switch."""
    found = {}
    for word in " ".join(flags).replace("=", " ").split():
        if word.startswith("--"):
            found[name := word] = "true"
        else:
            found[name] = word
    return found


def test_configs_replace_only_what_was_written(capsys, tmp_path):
    folder = tmp_path / "configs"
    run(capsys, *SMALL, "--write-configs", folder)
    run(capsys, *SMALL, "--top", "1", "--write-configs", folder)
    (folder / "mine.yaml").write_text("arch: owf_tiny\n")
    before = sorted(folder.iterdir())
    err = run(capsys, *SMALL, "--write-configs", folder, status=2).err
    assert "`--write-configs`" in err
    assert "mine.yaml" in err
    assert sorted(folder.iterdir()) == before


def test_a_base_of_ones_own(capsys, tmp_path):
    (tmp_path / "mine.yaml").write_text("data: somewhere\n")
    folder = tmp_path / "deep" / "configs"
    run(capsys, *SMALL, "--top", "1", "--write-configs", folder, "--config-base", tmp_path / "mine.yaml")
    for file in folder.glob("*.yaml"):
        assert read_config(file)["data"].value == "somewhere"


def test_the_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "layouts.png"
    run(capsys, *SMALL, "--batch-sizes", "1,4", "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "`--plot`" in run(capsys, *SMALL, "--plot", path, status=2).err
    run(capsys, "decoder_only_small", "--plot", path, "--overwrite")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("228M", 228_000_000),
        ("0.5g", 500_000_000),
        ("70.5k", 70_500),
        ("227975168", 227_975_168),
        ("227,975,168", 227_975_168),
    ],
)
def test_budgets(given, found):
    assert cli.explore.read_params(given) == found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bigg"], ["SIZE must be one of tiny, small", "bigg"]),
        (["big", "--params", "many", "--tolerance", "x", "--family", "stacks,towers", "--device", "a100"],
         ["`--params`", "228M", "`--tolerance`", "`--family`", "towers", "`--device`", "calibrated", "a100"]),
        (["big", "--params", "0"], ["`--params`"]),
        (["big", "--params", "10M"], ["no layout of family stacks, middle", "the nearest have 127,225,856"]),
        (["big", "--params", "999999999999G"], ["`--params`", "up to 1,000,000,000,000"]),
        (["big", "--tolerance", "100"], ["`--tolerance`", "below 100"]),
        (["big", "--multiple-of", "0", "--top", "0", "--beam", "0"], ["`--multiple-of`", "`--top`", "`--beam`"]),
        (["big", "--cpu"], ["`--device cpu`"]),
        (["big", "--plot", "x.gif"], ["`--plot` must end in"]),
        (["big", "--config-base", "x"], ["`--config-base` is for `--write-configs`"]),
        (["big", "--write-configs", "TMP/new", "--config-base", "wmt23"], ["`--config-base` must be", "'wmt23'"]),
        (["big", "--json", "TMP/there"], ["`--json`", "exists"]),
        (["big", "--vocab-size", "3"], ["`--vocab-size`"]),
    ],
)  # fmt: skip
def test_what_is_refused(capsys, tmp_path, arguments, said):
    (tmp_path / "there").write_text("{}")
    err = run(capsys, *(one.replace("TMP", str(tmp_path)) for one in arguments), status=2).err
    for part in said:
        assert part in err, err
    assert not (tmp_path / "new").exists()


def test_families_are_listed(capsys):
    with pytest.raises(SystemExit):
        cli.main(["explore", "--help"])
    out = capsys.readouterr().out
    for name in ("paper", "stacks", "middle", "taper", "attention", "per-layer"):
        assert re.search(rf"^  {name} +[A-Z]", out, re.MULTILINE)
