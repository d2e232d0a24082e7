"""The models that a command line names, what they are called, and what is known of each."""

import os

import pytest
import torch
from models_for_tests import checkpoint_of, make_model, parse

from owf_fairseq.data.recorded import RecordedData
from owf_fairseq.speed import benchmark_models
from owf_fairseq.speed.benchmark_models import describe_candidate
from owf_fairseq.speed.benchmark_names import Named, read_names


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Four checkpoints, by relative paths; what is in them does not matter."""
    monkeypatch.chdir(tmp_path)
    paths = ["runs/owf_small/best.pt", "runs/wide/best.pt", "runs/wide/last.pt", "best.pt"]
    for path in paths:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        (tmp_path / path).touch()
    return paths


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["runs/owf_small/best.pt", "runs/wide/last.pt"], ["owf_small", "wide"]),
        (["runs/wide/best.pt", "runs/wide/last.pt"], ["runs/wide/best.pt", "runs/wide/last.pt"]),
        (["runs/owf_small/best.pt", "owf_small"], ["runs/owf_small/best.pt", "owf_small"]),
        (["runs/owf_small/best.pt", "owf_small=runs/wide/best.pt"], ["runs/owf_small/best.pt", "owf_small"]),
        (["a=runs/wide/best.pt", "runs/wide/last.pt"], ["a", "wide"]),
        (["runs/wide/best.pt:runs/owf_small/best.pt"], ["runs/wide/best.pt:runs/owf_small/best.pt"]),
    ],
)
def test_a_checkpoint_has_the_name_of_its_folder(runs, words, names):
    assert [one.name for one in read_names(words)[0]] == names


def test_a_checkpoint_in_this_folder(runs, tmp_path):
    assert read_names(["best.pt"])[0] == [Named(tmp_path.name, "best.pt")]


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Writes checkpoints whose data are there."""
    data = RecordedData(tmp_path, "a", "b")
    monkeypatch.setattr("owf_fairseq.data.recorded.find_data", lambda *arguments: data)

    def store(name, arch, *flags):
        path = tmp_path / name
        torch.save(checkpoint_of(make_model(arch, *flags), parse(arch, *flags)), path)
        return str(path)

    return store


def facts(candidate):
    found = candidate.as_json("float32")
    return found["arch"], found["configuration"], found["flags"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--decoder-ffn", "none"], ("owf_tiny_no_dec", "NoDec", [])),
        (["--decoder-ffn", "sandwich"], ("owf_tiny", None, ["--decoder-ffn sandwich"])),
        (
            ["--decoder-ffn", "none", "--encoder-layers", "4", "--encoder-normalize-before"],
            ("owf_tiny_no_dec", "NoDec", ["--encoder-layers 4", "--encoder-normalize-before"]),
        ),
    ],
)
def test_arch_configuration_and_flags_are_those_of_the_blocks(flags, expected, stored):
    of_arch = describe_candidate(Named("a", "owf_tiny"), flags, 40)
    of_checkpoint = describe_candidate(Named("a", stored("a.pt", "owf_tiny", *flags)), [], 40)
    for found in (of_arch, of_checkpoint):
        arch, configuration, written = facts(found)
        assert (arch, configuration, sorted(written)) == expected
    assert of_arch.load(benchmark_models.Loading(cpu=True)).parameters == [of_arch.facts.parameters]


def test_an_ensemble_of_two_configurations_has_no_name(stored):
    paths = [stored("a.pt", "owf_tiny"), stored("b.pt", "owf_tiny", "--decoder-ffn", "none")]
    assert facts(describe_candidate(Named("a", ":".join(paths)), [], 40))[:2] == ("owf_tiny", None)
    assert facts(describe_candidate(Named("a", ":".join(paths[1:] * 2)), [], 40))[:2] == ("owf_tiny_no_dec", "NoDec")


def test_fairseqs_own_model_has_no_name(stored):
    size = ["--encoder-embed-dim", "64", "--encoder-layers", "2", "--decoder-layers", "2"]
    arch, configuration, flags = facts(describe_candidate(Named("a", stored("a.pt", "transformer", *size)), [], 40))
    assert (arch, configuration) == ("transformer", None)
    assert "--encoder-embed-dim 64" in flags


def test_lengths_are_what_the_model_takes():
    flags = ["--max-source-positions", "50", "--max-target-positions", "60"]
    found = describe_candidate(Named("a", "owf_tiny"), flags, 40)
    backend = found.load(benchmark_models.Loading(cpu=True))
    assert (found.max_source_length, found.max_target_length) == (49, 59)
    assert (backend.max_source_length, backend.max_target_length) == (49, 59)
