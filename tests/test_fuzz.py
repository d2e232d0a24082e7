"""Files of every kind with odd values, at random but always the same: each is used, or refused in sentences."""

import copy
import json
import random
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from models_for_tests import checkpoint_of, make_model, make_task, parse

from owf_fairseq import cli
from owf_fairseq.checkpoints.averaging import average
from owf_fairseq.checkpoints.inspection import inspect
from owf_fairseq.checkpoints.stored_model import read_model
from owf_fairseq.data.recorded import RecordedData, find_data
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.decoding.exported import FLAGS, ExportedModel
from owf_fairseq.errors import InputError
from owf_fairseq.paper.report import report
from owf_fairseq.paper.results import read_results
from owf_fairseq.paper.rows import BATCH_SIZES_TABLE

ARCH = "owf_tiny_one_wide_ffn"
SIZE = "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 8 --decoder-embed-dim 8".split()
SIZE += "--encoder-ffn-embed-dim 8 --decoder-ffn-embed-dim 8 --share-all-embeddings".split()

PLAIN = [
    *(None, True, False, 0, 1, -1, 2.5, 10**9, 10**30, float("nan"), float("inf"), "", "x", "\x1b[2J\n", "\0"),
    *("../x", "/etc/hostname", "9" * 400, "cycle-" + "9" * 5000, "${oc.env:HOME}", "exit()", [], [1], {}, {"a": [1]}),
]
"""What JSON can hold, too."""

DELETE = object()


def places(value, path=()):
    """The paths to everything in nested values."""
    value = vars(value) if isinstance(value, Namespace) else value
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in entries for found in [(*path, key), *places(one, (*path, key))]]


def odd(value, generator, values=PLAIN):
    """A copy with another value, or none, at one place."""
    made = copy.deepcopy(value)
    *path, last = generator.choice(places(made))
    inner = made
    for key in path:
        inner = (vars(inner) if isinstance(inner, Namespace) else inner)[key]
    inner = vars(inner) if isinstance(inner, Namespace) else inner
    chosen = generator.choice([*values, DELETE])
    if chosen is DELETE:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(chosen)
    return made


def refused(actions):
    """How many of the actions are refused; everything but an ``InputError`` is an error."""
    problems = []
    for action in actions:
        try:
            action()
        except InputError as error:
            problems.append(error.problems)
    assert all(sentences and all(sentences) for sentences in problems)
    return len(problems)


@pytest.fixture
def state():
    """A checkpoint with everything in it that is read."""
    args = parse(ARCH, *SIZE)
    state = checkpoint_of(make_model(ARCH, *SIZE), args)
    known = vars(parse("transformer")).keys() & {name for name in vars(args) if name.startswith(("enc", "dec", "adap"))}
    kept = known | {"arch", "activation_fn", "dropout", "share_all_embeddings", "max_source_positions", "encoder_ffn"}
    state["cfg"]["model"] = Namespace(**{name: value for name, value in vars(args).items() if name in kept})
    state["cfg"] |= {
        "task": {"_name": "translation", "data": "data", "source_lang": "en", "target_lang": "de"},
        "checkpoint": {"best_checkpoint_metric": "bleu", "maximize_best_checkpoint_metric": True},
        "common": {"seed": 1, "user_dir": "x"},
    }
    state["extra_state"] |= {"best": 1.0, "made_by": "owf average", "averaged": [{"file": "x", "updates": 3}]}
    return state


def test_checkpoints(state, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    generator = random.Random(1)
    weights = state.pop("model")
    found = 0
    for number in range(100):
        torch.save({**odd(state, generator, [*PLAIN, torch.zeros(2), b"x"]), "model": weights}, "model.pt")
        actions = [lambda: find_data(read_model("model.pt").state, "model.pt"), lambda: inspect("model.pt")]
        found += refused(actions if number % 4 else [*actions, lambda: average(["model.pt"])])
        if number % 10 == 0:
            assert cli.main(["inspect", "model.pt"]) in (0, 1, 2)
            captured = capsys.readouterr()
            assert "\x1b" not in captured.out + captured.err
    assert found > 50


def test_weights(state, tmp_path):
    generator = random.Random(2)
    shapes = [torch.zeros(0), torch.zeros(()), torch.zeros(3, 3), torch.full((8,), float("nan"))]
    for number in range(60):
        state_here = {**state, "model": odd(dict(state["model"]), generator, shapes)}
        torch.save(state_here, tmp_path / f"{number}.pt")
    files = [str(path) for path in tmp_path.glob("*.pt")]
    assert refused([lambda file=file: read_model(file).check() for file in files]) > 50
    refused([lambda file=file: inspect(file) for file in files])


def test_records_of_segmentations(tmp_path):
    generator = random.Random(3)
    (tmp_path / "codes").write_text("#version: 0.2\na b\n")
    (tmp_path / "pieces").write_bytes(b"\n\x05no model")
    found = 0
    for number in range(300):
        kind = ("none", "moses-bpe", "sentencepiece")[number % 3]
        record = {"type": kind, "source": "en", "target": "de", "codes": "codes", "model": "pieces"}
        text = json.dumps(odd(record, generator))
        if number % 5 == 0:
            text = text[: generator.randrange(len(text))] + generator.choice(["", "[" * 9000, "\udcff", "NaN"])
        (tmp_path / "segmentation.json").write_text(text, errors="surrogateescape")
        found += refused([lambda: Segmentation.load(tmp_path).encode("a b c")])
    assert found > 150


def test_dictionaries(tmp_path):
    generator = random.Random(4)
    make_task().source_dictionary.save(str(tmp_path / "dict.en.txt"))
    good = (tmp_path / "dict.en.txt").read_bytes()
    (tmp_path / "dict.de.txt").write_bytes(good)
    found = 0
    for _ in range(300):
        at = generator.randrange(len(good))
        piece = generator.choice(
            [b"", b"\n", b" ", b"\xff", b"\0", b"w1 1\n", b"9" * 5000, b" #fairseq:overwrite", b"1.5 x"]
        )
        (tmp_path / "dict.en.txt").write_bytes(good[:at] + piece + good[at + generator.randrange(3) :])
        found += refused([RecordedData(tmp_path, "en", "de").dictionaries])
    assert found > 50


def test_exported_models(state, tmp_path):
    generator = random.Random(5)
    record = {"kind": "export", "source": "en", "target": "de", "max_source_length": 9, "max_target_length": 9}
    record |= {"target_vocabulary_size": 40, "quantization": "int8", "parameters": 9, "verification": {"tokens": 1}}
    flags = {"model": vars(state["cfg"]["model"]), "task": {"data": "x"}}
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "a"]
    for name in ("model.bin", "config.json"):
        (tmp_path / name).touch()
    found = 0
    for number in range(300):
        files = {"export.json": record, FLAGS: flags, "shared_vocabulary.json": symbols}
        which = list(files)[number % 3]
        for name, value in files.items():
            (tmp_path / name).write_text(json.dumps(odd(value, generator) if name == which else value))

        def read():
            model = ExportedModel.read(tmp_path)
            assert model.max_source_length > 0
            return model.data, model.source_symbols, model.model()

        found += refused([read])
    assert found > 120


def test_json_of_reports(tmp_path):
    generator = random.Random(6)
    spread = {"mean": 9.0, "median": 9.0, "sd": None, "by_run": [9.0, 8.0]}
    names, widths = ("owf_big", "owf_big_one_wide_ffn"), {"encoder": 4096, "decoder": None}
    benchmark = {
        "kind": "benchmark",
        "models": [
            {"name": name, "arch": name, "configuration": "x", "parameters": 9, "ffn_dims": widths}
            | {"precision": "float32", "baseline": None if name == names[0] else names[0]}
            for name in names
        ],
        "measurements": [
            {"name": name, "batch_size": 1, "lengths": "2/2", "sentences": 2, "tokens_per_s": spread, "ratio": spread}
            for name in names
        ],
        "settings": {"beam": 5, "runs": 2, "input": None, "sentences": None},
        "machine": {"device": "CPU"},
    }  # fmt: skip
    evaluation = {
        "kind": "evaluation",
        "systems": [
            {"name": name, "baseline": names[0], "scores": {"bleu": {"score": 30.0, "significant": True}}}
            for name in names
        ],
        "metrics": {"bleu": {"name": "BLEU", "signature": "nrefs:1"}},
        "significance": {"level": 0.05, "test": "bootstrap", "samples": 1000},
    }
    path = tmp_path / "results.json"
    found = 0
    for number in range(400):
        path.write_text(json.dumps(odd((benchmark, evaluation)[number % 2], generator)))

        def read():
            results = read_results([path])
            report(results, "one_wide").as_markdown()
            report(results, BATCH_SIZES_TABLE).as_markdown()

        found += refused([read])
    assert found > 200


def test_numbers_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a\n")
    numbers = ["9" * 400, "-" + "9" * 30, "1e400", "nan", "-inf", "-1", "9" * 5000, "2147483648"]
    flags = {
        "params": [
            "--vocab-size",
            "--encoder-layers",
            "--decoder-ffn-embed-dim",
            "--max-source-positions",
            "--dropout",
        ],
        "translate": ["--beam", "--nbest", "--lenpen", "--max-len-a", "--max-len-b", "--max-tokens", "--buffer-size"],
        "benchmark": ["--threads", "--runs", "--sentences", "--vocab-size", "--beam", "--encoder-embed-dim"],
    }
    model = {"params": [ARCH], "translate": ["missing.pt", "--input", "text"], "benchmark": [ARCH]}
    small = ["--lengths", "1/1", "--sentences", "1", "--runs", "1", "--vocab-size", "9", "--cpu"]
    for command, names in flags.items():
        for flag in names:
            for number in numbers:
                words = [command, *model[command], *(small if command == "benchmark" else []), f"{flag}={number}"]
                try:
                    status = cli.main(words)
                except SystemExit as stop:  # argparse
                    status = stop.code
                assert status == 2 or (command == "params" and status == 0), words
    assert "Traceback" not in capsys.readouterr().err
