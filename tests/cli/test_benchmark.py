"""`owf benchmark` on real models, small ones: what it measures, predicts, prints, writes and refuses."""

import json
import re

import pytest
import torch

from owf_fairseq import cli
from owf_fairseq.cost_model.cost import Workload, cost, shape_of_arch
from owf_fairseq.errors import InputError
from owf_fairseq.parameters import count_parameters
from owf_fairseq.speed import benchmark as measurement

SMALL = ["--vocab-size", "60", "--cpu", "--beam", "2"]


def run(capsys, *arguments, status=0):
    assert cli.main(["benchmark", *map(str, arguments)]) == status
    return capsys.readouterr()


def tables(printed):
    """Each table of the output: its lines, without the rule."""
    blocks = [block.splitlines() for block in printed.split("\n\n")]
    found = [block for block in blocks if len(block) > 1 and block[1].startswith("--")]
    return [[re.split(r"  +", line.strip()) for line in (block[0], *block[2:])] for block in found]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """One measurement of three archs, two lengths and two batch sizes: its JSON, and what was printed."""
    import contextlib
    import io

    path = tmp_path_factory.mktemp("benchmark") / "speed.json"
    printed = io.StringIO()
    models = ["owf_tiny", "owf_tiny_no_dec", "wide=owf_tiny_one_wide_ffn"]
    what = ["--lengths", "3/4", "5/6", "--batch-sizes", "2,1", "--sentences", "3", "--runs", "2"]
    with contextlib.redirect_stdout(printed):
        assert cli.main(["benchmark", *models, *SMALL, *what, "--json", str(path)]) == 0
    return json.loads(path.read_text()), printed.getvalue()


def test_json(measured):
    data, _ = measured
    assert data["kind"] == "benchmark"
    assert {(model["backend"], model["precision"]) for model in data["models"]} == {("fairseq", "float32")}
    assert {"owf_fairseq", "python", "torch"} < set(data["versions"])
    assert data["machine"]["device"] == "CPU"
    assert data["machine"]["cpus"] > 0
    assert data["settings"]["lengths"] == [[3, 4], [5, 6]]
    assert (data["settings"]["beam"], data["settings"]["runs"], data["settings"]["threads"]) == (2, 2, 1)
    vanilla, _, wide = data["models"]
    assert vanilla["parameters"] == count_parameters("owf_tiny", 60).total
    assert vanilla["weights_mb"] == pytest.approx(4e-6 * vanilla["parameters"])
    assert (wide["name"], wide["arch"], wide["configuration"]) == ("wide", "owf_tiny_one_wide_ffn", "One Wide FFN")
    assert wide["ffn_dims"] == {"encoder": 12 * 128, "decoder": None}
    assert (wide["checkpoint"], wide["layers"]) == (None, {"encoder": 6, "decoder": 6})


def test_measurements(measured):
    data, _ = measured
    entries = data["measurements"]
    assert [
        (entry["lengths"], entry["batch_size"], entry["batches"], entry["sentences"]) for entry in entries[::3]
    ] == [
        ("3/4", 2, 2, 4),
        ("3/4", 1, 3, 3),
        ("5/6", 2, 2, 4),
        ("5/6", 1, 3, 3),
    ]
    firsts = [entry for entry in entries if entry["name"] == "owf_tiny"]
    for entry in entries:
        speeds = entry["tokens_per_s"]["by_run"]
        [first] = [
            one for one in firsts if (one["lengths"], one["batch_size"]) == (entry["lengths"], entry["batch_size"])
        ]
        assert (entry["source_length"], entry["target_length"]) == tuple(map(int, entry["lengths"].split("/")))
        assert len(speeds) == 2
        assert entry["tokens_per_s"]["mean"] == pytest.approx(sum(speeds) / 2)
        ratios = [own / other for own, other in zip(speeds, first["tokens_per_s"]["by_run"], strict=True)]
        assert entry["ratio"]["by_run"] == ratios
        assert entry["time_to_first_token_ms"]["mean"] > 0
        assert entry["failure"] is None
    wide = entries[2]
    expected = cost(shape_of_arch("owf_tiny_one_wide_ffn", 60), Workload(2, 2, 3, 4))
    assert (wide["flops_per_token"], wide["bytes_per_token"]) == (expected.flops, expected.bytes)


def test_tables(measured):
    data, printed = measured
    models, speeds, by_size = tables(printed)
    assert [line[0] for line in models[1:4]] == ["owf_tiny", "owf_tiny_no_dec", "wide"]
    assert models[3][3:] == [
        "1,536",
        "-",
        f"{data['models'][2]['parameters']:,}",
        f"{data['models'][2]['weights_mb']:.1f}",
    ]
    for line, entry in zip(speeds[1:13], data["measurements"], strict=True):
        assert line[:3] == [entry["lengths"], str(entry["batch_size"]), entry["name"]]
        assert line[3] == f"{entry['tokens_per_s']['mean']:,.1f} ± {entry['tokens_per_s']['sd']:,.1f}"
    assert speeds[1][4] == "1"
    assert speeds[2][4].startswith(f"{data['measurements'][1]['ratio']['median']:.3f} ± ")
    assert by_size[0][2:] == [
        *("owf_tiny, tokens/s", "owf_tiny_no_dec, tokens/s", "wide, tokens/s"),
        *("owf_tiny_no_dec, speed-up, %", "wide, speed-up, %"),
    ]
    assert [line[:2] for line in by_size[1:5]] == [["3/4", "2"], ["3/4", "1"], ["5/6", "2"], ["5/6", "1"]]
    assert by_size[2][2] == speeds[4][3]
    assert int(by_size[2][6]) == round(100 * (data["measurements"][5]["ratio"]["median"] - 1))
    assert "Beam 2, 1 thread, CPU" in printed
    assert "end-of-sentence symbols not counted" in printed


FAMILIES = ["owf_tiny", "owf_tiny_no_dec", "owf_decoder_only_tiny", "owf_decoder_only_tiny_shared_dec"]


@pytest.mark.parametrize("flags", [["--by-size"], ["--baseline", FAMILIES[0], "--baseline", FAMILIES[2]]])
def test_each_family_has_its_own_baseline(flags, capsys, tmp_path):
    path = tmp_path / "speed.json"
    what = [*SMALL, "--lengths", "2/3", "--batch-sizes", "1,2", "--sentences", "2", "--runs", "2", "--json", path]
    printed = run(capsys, *FAMILIES, *what, *flags).out
    data = json.loads(path.read_text())
    assert [model["baseline"] for model in data["models"]] == [None, FAMILIES[0], None, FAMILIES[2]]
    for start in (0, 4):  # a batch size
        one, two, three, four = data["measurements"][start : start + 4]
        for entry, base in ((one, one), (two, one), (three, three), (four, three)):
            speeds = zip(entry["tokens_per_s"]["by_run"], base["tokens_per_s"]["by_run"], strict=True)
            assert entry["ratio"]["by_run"] == [own / other for own, other in speeds]
    _, speeds, by_size = tables(printed)
    assert [line[4] == "1" for line in speeds[1:5]] == [True, False, True, False]
    assert by_size[0][6:] == [f"{FAMILIES[1]}, speed-up, %", f"{FAMILIES[3]}, speed-up, %"]
    assert f"its baseline ({FAMILIES[0]} for {FAMILIES[1]}; {FAMILIES[2]} for {FAMILIES[3]})" in printed


def test_flags_are_the_archs(capsys, tmp_path):
    flags = ["--encoder-layers", "2", "--decoder-ffn", "sequence-2"]
    path = tmp_path / "a.json"
    what = [*SMALL, *flags, "--runs", "1", "--lengths", "2/2", "--sentences", "1", "--unpacked", "--markdown"]
    out = run(capsys, "a=owf_tiny", "b=owf_tiny_no_enc", *what, "--json", path).out
    assert out.startswith("| model | arch |")
    data = json.loads(path.read_text())
    assert [model["parameters"] for model in data["models"]] == [
        count_parameters(arch, 60, flags).total for arch in ("owf_tiny", "owf_tiny_no_enc")
    ]
    assert data["models"][0]["layers"]["encoder"] == 2
    assert data["settings"]["unpacked"] == [model["name"] for model in data["models"]]
    assert data["measurements"][0]["tokens_per_s"]["sd"] is None
    [_, speeds] = tables(run(capsys, "owf_tiny", *what[:-1]).out)
    assert "±" not in speeds[1][3]


def test_some_models_can_be_left_as_fairseq_has_them(capsys, tmp_path):
    path = tmp_path / "speed.json"
    what = [*SMALL, "--runs", "1", "--lengths", "2/2", "--sentences", "1", "--json", path, "--unpacked", "plain"]
    out = run(capsys, "plain=owf_tiny", "owf_tiny", *what).out
    assert json.loads(path.read_text())["settings"]["unpacked"] == ["plain"]
    assert "matrices as fairseq leaves them: plain; packed: all others in fairseq" in out


def test_text_and_checkpoints(copier, capsys, tmp_path):
    text = tmp_path / "text.en"
    text.write_text("the lamp opens the door.\n\nthe fan stops the lock and the lamp starts the camera.\nthe door.\n")
    path = tmp_path / "speed.json"
    what = ["--input", text, "--batch-sizes", "2", "--runs", "2", "--cpu", "--json", path, "--memory", "--calibrate"]
    captured = run(capsys, f"copier={copier}", *what)
    assert "1 of 4 lines are blank or too long" in captured.err
    data = json.loads(path.read_text())
    [model], [entry] = data["models"], data["measurements"]
    assert (model["checkpoint"], model["configuration"]) == (str(copier), "One Wide FFN")
    assert {"--encoder-layers 1", "--share-all-embeddings", "--encoder-normalize-before"} < set(model["flags"])
    assert (entry["lengths"], entry["batches"], entry["sentences"]) == ("text", 2, 3)
    pieces = 3 * entry["source_length"]
    assert pieces == int(pieces) > 3
    assert entry["target_length"] == pytest.approx(entry["source_length"], rel=0.5)  # it has learnt to copy
    assert model["weights_mb"] < entry["peak_memory_mb"] < 200
    assert entry["roofline_tokens_per_s"] > entry["tokens_per_s"]["mean"]
    assert data["calibration"]["rows"] == 10
    header = tables(captured.out)[1][0]
    assert header[-2:] == ["roofline, tokens/s", "peak memory, MB"]


def test_ensemble_and_checkpoint_beside_arch(copier, capsys, tmp_path):
    path = tmp_path / "speed.json"
    what = ["--lengths", "2/3", "--runs", "1", "--sentences", "1", *SMALL, "--json", path]
    captured = run(capsys, f"two={copier}:{copier}", f"one={copier}", "owf_small", *what)
    assert "different vocabularies" in captured.err
    two, one, arch = json.loads(path.read_text())["models"]
    assert two["parameters"] == 2 * one["parameters"]
    assert arch["checkpoint"] is None
    two, one, _ = json.loads(path.read_text())["measurements"]
    assert two["flops_per_token"] == 2 * one["flops_per_token"]


def test_threads_are_given_for_the_measurement_only(capsys, monkeypatch):
    seen = []

    def measure(*arguments):
        seen.append(torch.get_num_threads())
        raise InputError("enough")

    monkeypatch.setattr(measurement, "measure", measure)
    before = torch.get_num_threads()
    for threads in (before + 1, before + 2):
        run(capsys, "owf_tiny", *SMALL, "--threads", threads, status=2)
    assert seen == [before + 1, before + 2]
    assert torch.get_num_threads() == before


def test_lack_of_memory_is_a_row(capsys, monkeypatch, tmp_path):
    from owf_fairseq.decoding.fairseq_backend import FairseqBackend

    search = FairseqBackend.search

    def greedy(self, batch, options):
        if len(batch) == 4 and self.max_source_length:
            raise RuntimeError("DefaultCPUAllocator: not enough memory")
        return search(self, batch, options)

    monkeypatch.setattr(FairseqBackend, "search", greedy)
    path = tmp_path / "a.json"
    out = run(
        *(capsys, "owf_tiny", "owf_tiny_no_dec", *SMALL, "--lengths", "2/2", "--batch-sizes", "1,4", "--runs", "1"),
        *("--sentences", "1", "--json", path),
    ).out
    _, speeds, by_size = tables(out)
    assert speeds[3][3:] == ["out of memory", "-", "-", "-", "-"]
    assert by_size[2][2:] == ["out of memory", "out of memory", "-"]
    last = json.loads(path.read_text())["measurements"][-1]
    assert (last["failure"], last["tokens_per_s"], last["ratio"]) == ("out of memory", None, None)
    assert by_size[1][2] != "out of memory"


@pytest.mark.parametrize("kind", ["measured", "predicted"])
def test_plot(kind, capsys, tmp_path):
    pytest.importorskip("matplotlib", reason="`pip install '.[plot]'` for the plot")
    path = tmp_path / "new" / "speed.png"
    what = ["owf_tiny", "owf_tiny_no_dec", "--batch-sizes", "1,2", "--lengths", "2/2", "--plot", path]
    more = ["--predict"] if kind == "predicted" else [*SMALL, "--runs", "2", "--sentences", "1"]
    run(capsys, *what, *more)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [other.name for other in path.parent.iterdir() if other.name[0] != "."] == ["speed.png"]
    if kind == "measured":
        assert "made before with the same settings" in run(capsys, *what, *more).err
        assert "(`--runs` 2, now 3)" in run(capsys, *what, *more, "--runs", "3", status=2).err
        path.with_name(".speed.png.owf.json").unlink()
    err = run(capsys, *what, *more, status=2).err
    assert "exists: name another file, or replace it with `--overwrite`" in err
    run(capsys, *what, *more, "--overwrite")


def test_plot_without_matplotlib(capsys, monkeypatch, tmp_path):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    path = tmp_path / "a.png"
    err = run(capsys, "owf_tiny", "--predict", "--batch-sizes", "1,2", "--plot", path, status=2).err
    assert "pip install '.[plot]'" in err
