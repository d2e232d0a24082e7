"""`owf benchmark --predict`: the cost model on the command line."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from owf_fairseq import cli
from owf_fairseq.cost_model.cost import Workload, cost, shape_of_arch
from owf_fairseq.cost_model.device_profiles import V100, V100_ROOFLINE, DeviceProfile

ARCHS = ["owf_big", "owf_big_no_dec", "wide=owf_big_one_wide_ffn"]


def run(capsys, *arguments):
    assert cli.main(["benchmark", "--predict", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_costs_and_break_even(capsys, tmp_path):
    path = tmp_path / "a.json"
    out = run(capsys, *ARCHS, "--vocab-size", "50408", "--json", path)
    data = json.loads(path.read_text())
    assert data["kind"] == "prediction"
    big, no_dec, wide = data["predictions"]
    shape = shape_of_arch("owf_big_one_wide_ffn", 50_408)
    assert wide["decoder_flops"] == cost(shape, Workload()).decoder_flops
    assert wide["encoder_flops"] == cost(shape, Workload()).encoder_flops
    assert wide["tokens_per_s"] == V100.tokens_per_s(shape, Workload())
    assert wide["ratio"] == wide["tokens_per_s"] / big["tokens_per_s"]
    assert [one["break_even_batch_size"] for one in (big, no_dec)] == [None, None]
    assert 16 < wide["break_even_batch_size"] < 32
    for one in (big, no_dec, wide):
        assert one["encoder_bytes_per_token"] + one["decoder_bytes_per_token"] == pytest.approx(one["bytes"])
    assert big["encoder_bytes_per_token"] == no_dec["encoder_bytes_per_token"] < wide["encoder_bytes_per_token"] / 7
    assert wide["decoder_bytes_per_token"] == no_dec["decoder_bytes_per_token"] < big["decoder_bytes_per_token"]
    assert re.split(r"  +", out.splitlines()[0])[7:9] == ["enc. MB/token", "dec. MB/token"]
    lines = out.splitlines()
    assert [line.split()[-1] for line in lines[2:5]] == ["-", "65,536", str(wide["break_even_batch_size"])]
    assert lines[3].split()[-2:] == ["above", "65,536"]
    assert lines[4].split()[:3] == ["26/30", "wide", "1,384.8"]
    assert "15,700 GFLOP/s and 900 GB/s" in out
    assert "fitted" in out


def test_batch_sizes_and_lengths(capsys):
    out = run(capsys, *ARCHS, "--batch-sizes", "512,1", "--lengths", "12/12", "26/30", "--beam", "3", "--markdown")
    costs, by_size = out.split("\n\n")[0], out.split("\n\n")[2]
    assert "Batch size 512, beam 3" in out
    assert [line.split(" | ")[0] for line in costs.splitlines()[2:]] == ["| 12/12"] * 3 + ["| 26/30"] * 3
    rows = [line.strip("| ").split(" | ") for line in by_size.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["12/12", "512"], ["12/12", "1"], ["26/30", "512"], ["26/30", "1"]]
    assert rows[0][2] == f"{V100.tokens_per_s(shape_of_arch('owf_big', 32_000), Workload(512, 3, 12, 12)):,.1f}"
    assert int(rows[2][6]) < 0 < int(rows[3][6])
    assert int(rows[2][5]) > 0


def test_flags_of_the_model(capsys, tmp_path):
    plain, flagged = tmp_path / "a.json", tmp_path / "b.json"
    run(capsys, "owf_tiny_no_dec", "--json", plain)
    run(capsys, "owf_tiny", "--decoder-ffn", "none", "--json", flagged)
    first, second = (json.loads(path.read_text())["predictions"][0] for path in (plain, flagged))
    assert first == {**second, "name": "owf_tiny_no_dec"}


@pytest.mark.parametrize(
    ("flags", "profile"),
    [
        (["--profile", "v100-roofline"], V100_ROOFLINE),
        (["--peak-gflops", "70", "--bandwidth-gbs", "12"], DeviceProfile("", 70e9, 70e9, 12e9)),
    ],
)
def test_other_devices(flags, profile, capsys, tmp_path):
    path = tmp_path / "a.json"
    out = run(capsys, "owf_base", *flags, "--json", path)
    [found] = json.loads(path.read_text())["predictions"]
    assert found["tokens_per_s"] == profile.tokens_per_s(shape_of_arch("owf_base", 32_000), Workload())
    assert "fitted" not in out


def test_half_precision(capsys, tmp_path):
    path = tmp_path / "a.json"
    out = run(capsys, "owf_base", "--fp16", "--json", path)
    shape = shape_of_arch("owf_base", 32_000)
    [found] = json.loads(path.read_text())["predictions"]
    assert found["tokens_per_s"] == V100.tokens_per_s(shape, Workload(), fp16=True)
    assert found["bytes"] == cost(shape, Workload()).bytes / 2
    assert "125,000 GFLOP/s" in out


def test_calibrated(capsys, monkeypatch):
    from owf_fairseq.speed import calibration

    monkeypatch.setattr(calibration, "_MATRICES", 2)
    assert "predicted for this machine" in run(capsys, "owf_base", "--calibrate", "--cpu")


def test_paper(capsys):
    out = run(capsys, "--paper")
    lines = out.splitlines()
    [at_one] = [line.split() for line in lines if line.split()[:2] == ["1", "110.8"]]
    assert at_one[:4] == ["1", "110.8", "137.5", "+24"]
    assert "One Wide FFN stops being ahead at batch size 19 (predicted)" in out
    [row] = [line.split() for line in lines if "Transformer Deep Enc. Shallow Dec." in line]
    assert row[-3:] == ["230.1", "230.1", "(fitted)"]


def test_archs_alone_need_neither_torch_nor_fairseq():
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        "from owf_fairseq.cli import main; status = main()\n"
        "assert not {'torch', 'fairseq'} & set(sys.modules); sys.exit(status)"
    )
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, "benchmark", "--predict", *ARCHS],
        capture_output=True, text=True, timeout=300, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "owf_big_no_dec" in done.stdout
    assert time.monotonic() - begun < 3  # 0.2 s on an idle machine
