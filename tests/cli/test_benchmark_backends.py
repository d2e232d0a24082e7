"""`owf benchmark` with CTranslate2: each model with each backend in one run, and what was exported before."""

import json
from dataclasses import replace

import pytest

from owf_fairseq import cli
from owf_fairseq.decoding.backends import Choice
from owf_fairseq.errors import InputError
from owf_fairseq.speed.benchmark import compared_models, prepare_benchmark
from owf_fairseq.speed.benchmark_models import describe_candidate
from owf_fairseq.speed.benchmark_names import Named, with_backends
from owf_fairseq.speed.options import BenchmarkOptions

FAST = ["--cpu", "--runs", "1", "--warmup", "0", "--sentences", "2", "--beam", "2", "--lengths", "3/4"]


def benchmark(capsys, *arguments):
    """Status, and what was printed and said."""
    status = cli.main(["benchmark", *map(str, arguments)])
    return (status, *capsys.readouterr())


@pytest.mark.parametrize(
    ("backends", "expected"),
    [
        ((), [("a", "fairseq"), ("b", "fairseq")]),
        (("ctranslate2:int8",), [("a", "ctranslate2:int8"), ("b", "ctranslate2:int8")]),
        (
            ("fairseq", "ctranslate2"),
            [
                *[("a", "fairseq"), ("b", "fairseq")],
                *[("a@ctranslate2", "ctranslate2"), ("b@ctranslate2", "ctranslate2")],
            ],
        ),
    ],
)
def test_every_model_is_decoded_by_every_backend(backends, expected):
    found = with_backends([Named("a", "owf_tiny"), Named("b", "owf_tiny_no_dec")], backends)
    assert [(one.name, str(one.choice)) for one in found] == expected


def test_a_baseline_is_one_for_all_backends():
    named = [Named(name, name) for name in ("owf_tiny_no_dec", "owf_tiny", "owf_decoder_only_tiny")]
    spread = with_backends(named, ("ctranslate2:int8", "fairseq"))
    options = BenchmarkOptions(vocab_size=20, baseline=("owf_tiny", "owf_decoder_only_tiny"))
    found = [replace(describe_candidate(Named("a", one.model), (), 20), named=one) for one in spread]
    compared = compared_models(found, options)
    tiny, other = "owf_tiny@ctranslate2:int8", "owf_decoder_only_tiny@ctranslate2:int8"
    assert [*compared.values()] == [tiny, tiny, other] * 2


def test_an_exported_model_keeps_its_place(exported_copier):
    named = [Named("first", str(exported_copier)), Named("a", "owf_tiny")]
    assert [one.name for one in with_backends(named, ())] == ["first", "a"]
    found = with_backends(named, ("fairseq", "ctranslate2:int8"))
    assert [one.name for one in found] == ["a", "first", "a@ctranslate2:int8"]


def test_equal_backends_and_names():
    found = with_backends([Named("a", "owf_tiny")], ("ctranslate2", "ctranslate2:float32"))
    assert [one.name for one in found] == ["a"]
    with pytest.raises(InputError, match="two models have the name 'a@ctranslate2'"):
        with_backends([Named("a", "owf_tiny"), Named("a@ctranslate2", "owf_tiny_no_dec")], ("fairseq", "ctranslate2"))


def test_a_search_has_as_many_threads_as_asked_for(exported_copier):
    (candidate,) = prepare_benchmark(
        [Named("a", str(exported_copier), Choice("ctranslate2"))], (), BenchmarkOptions(threads=2)
    )
    assert candidate.load(BenchmarkOptions(threads=2).loading(candidate)).threads == 2


@pytest.mark.parametrize("backends", [("fairseq:int8",), ("onnx",), ("ctranslate2:int4",), ("ctranslate2:",)])
def test_there_is_no_such_backend(backends):
    with pytest.raises(InputError, match="`--backend`"):
        with_backends([Named("a", "owf_tiny")], backends)


def test_archs_in_one_run(capsys, tmp_path):
    path = tmp_path / "speed.json"
    models = ["owf_tiny", "owf_tiny_one_wide_ffn", "--vocab-size", "60", "--memory", "--calibrate"]
    status, out, _ = benchmark(
        capsys, *models, *FAST, "--backend", "fairseq,ctranslate2,ctranslate2:int8", "--json", path
    )
    assert status == 0
    data = json.loads(path.read_text())
    assert "ctranslate2" in data["versions"]
    assert [(model["name"], model["backend"], model["precision"]) for model in data["models"]] == [
        ("owf_tiny", "fairseq", "float32"),
        ("owf_tiny_one_wide_ffn", "fairseq", "float32"),
        ("owf_tiny@ctranslate2", "ctranslate2", "float32"),
        ("owf_tiny_one_wide_ffn@ctranslate2", "ctranslate2", "float32"),
        ("owf_tiny@ctranslate2:int8", "ctranslate2", "int8_float32"),
        ("owf_tiny_one_wide_ffn@ctranslate2:int8", "ctranslate2", "int8_float32"),
    ]
    fairseq, _, exported, _, int8, _ = data["models"]
    assert exported["parameters"] == fairseq["parameters"]
    # its file has the positions too
    assert int8["weights_mb"] < fairseq["weights_mb"] < exported["weights_mb"] < fairseq["weights_mb"] + 0.4
    for entry in data["measurements"]:
        assert entry["failure"] is None
        assert entry["tokens_per_s"]["mean"] > 0
        assert entry["target_length"] == 4
        assert entry["peak_memory_mb"] > 0
        assert entry["bandwidth_percent"] > 0
    assert "ctranslate2, int8_float32" in out


def test_what_was_exported_beside_its_checkpoint(copier, exported_copier, capsys, tmp_path):
    path, text = tmp_path / "speed.json", tmp_path / "text"
    text.write_text("the lamp opens the door.\nthe fan stops the heater.\n")
    flags = ["--cpu", "--runs", "1", "--warmup", "0", "--input", text, "--json", path]
    status, _, err = benchmark(capsys, copier, exported_copier, *flags, "--backend", "fairseq,ctranslate2")
    assert (status, "warning" in err) == (0, False)
    data = json.loads(path.read_text())
    names = [model["name"] for model in data["models"]]
    assert names == ["model", "model@ctranslate2", "ctranslate2"]
    assert len({model["arch"] for model in data["models"]}) == 1
    # the translations are the same, so that as many tokens are
    assert len({entry["target_length"] for entry in data["measurements"]}) == 1


def test_what_cannot_be_measured(copier, exported_copier, capsys, tmp_path):
    status, _, err = benchmark(
        capsys, "owf_decoder_only_tiny", "owf_tiny", "--activation-fn", "linear", "--backend", "ctranslate2", *FAST
    )
    assert status == 2
    assert "`--backend ctranslate2`, owf_decoder_only_tiny: `--arch owf_decoder_only_tiny` is decoder-only" in err
    assert "`--activation-fn` must be one of relu" in err
    status, _, err = benchmark(capsys, f"{copier}:{copier}", "--backend", "ctranslate2", *FAST)
    assert (status, "has no ensembles" in err) == (2, True)
    status, _, err = benchmark(capsys, exported_copier, "--backend", "fairseq", *FAST)
    assert (status, "which `--backend fairseq` can't read" in err) == (2, True)
    status, _, err = benchmark(capsys, tmp_path, *FAST)
    assert (status, "is not a folder that `owf export` made" in err) == (2, True)
    status, _, err = benchmark(capsys, "owf_tiny", "--predict", "--backend", "ctranslate2")
    assert (status, "`--backend` measures, and `--predict` does not" in err) == (2, True)
    status, _, err = benchmark(capsys, exported_copier, "--data", tmp_path, *FAST)
    assert (status, "`--data` is for checkpoints" in err) == (2, True)


def test_as_servers_see_it(exported_copier, capsys, tmp_path):
    """Words a second of the source, the size of the folder, and what clients get, of a text in batches of pieces."""
    path, text = tmp_path / "speed.json", tmp_path / "text"
    text.write_text("the lamp opens the door.\nthe fan stops.\n\n")
    flags = ["--runs", "2", "--beam", "1", "--max-tokens", "40", "--clients", "1,2", "--threads", "2", "--cpu"]
    models = [f"{name}={exported_copier}" for name in "ab"]
    status, out, _ = benchmark(capsys, *models, *flags, "--input", text, "--json", path)
    assert status == 0
    data = json.loads(path.read_text())
    for model in data["models"]:
        assert model["folder_mb"] == sum(file.stat().st_size for file in exported_copier.rglob("*")) / 1e6
    for entry in data["measurements"]:
        assert (entry["batch_size"], entry["max_tokens"], entry["sentences"]) == (None, 40, 2)
        seconds = [entry["target_length"] * 2 / speed for speed in entry["tokens_per_s"]["by_run"]]
        assert entry["words_per_s"]["by_run"] == pytest.approx([8 / one for one in seconds])
    asked = [(entry["name"], entry["clients"], entry["sentences"]) for entry in data["clients"]]
    assert asked == [("a", 1, 2), ("b", 1, 2), ("a", 2, 2), ("b", 2, 2)]
    for entry in data["clients"]:
        assert len(entry["translations_per_s"]["by_run"]) == 2
        assert 0 < entry["latency_ms"]["median"] <= entry["latency_ms"]["p95"]
    assert {entry["ratio"]["median"] for entry in data["clients"] if entry["name"] == "a"} == {1.0}
    assert " 40 pieces " in out
    assert "Beam 1, 2 threads" in out
    assert {"words/s", "folder, MB", "translations/s", "latency of 95 %, ms"} <= {
        cell.strip() for line in out.split("\n") for cell in line.split("  ")
    }


def test_beam_one_and_several_threads_with_each_backend(tmp_path, capsys):
    speed = tmp_path / "speed.json"
    flags = ["--encoder-layers", "1", "--decoder-layers", "1", "--vocab-size", "50", "--lengths", "3/3"]
    more = ["--sentences", "1", "--runs", "1", "--warmup", "0", "--beam", "1", "--threads", "2", "--cpu"]
    command = ["benchmark", "owf_tiny", "--backend", "fairseq,ctranslate2", *flags, *more, "--json", str(speed)]
    assert cli.main(command) == 0
    data = json.loads(speed.read_text())
    assert (data["settings"]["beam"], data["settings"]["threads"]) == (1, 2)
    assert [entry["failure"] for entry in data["measurements"]] == [None, None]
    assert "Beam 1, 2 threads" in capsys.readouterr().out
