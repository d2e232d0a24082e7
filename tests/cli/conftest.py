"""Checkpoints and texts that several modules of tests share."""

import shutil

import pytest
import torch
from similarity_for_tests import REFERENCES, SENTENCES

from owf_fairseq.checkpoints.checkpoint import read_checkpoint


@pytest.fixture(scope="session")
def models(copier, tmp_path_factory):
    """A trained model beside its data, and others that differ from it by a little and by more noise."""
    folder = tmp_path_factory.mktemp("similarity")
    shutil.copytree(copier.parent.parent / "data", folder / "data")
    found = {}
    for name, noise in (("model", 0.0), ("near", 0.02), ("nearer", 0.01), ("far", 0.06)):
        state = read_checkpoint(copier)
        state["cfg"]["common"]["seed"] = {"model": 1, "near": 2, "nearer": 3, "far": 4}[name]
        generator = torch.Generator().manual_seed(5)
        for tensor in state["model"].values():
            if tensor.is_floating_point() and tensor.dim() == 2:
                tensor += noise * torch.randn(tensor.shape, generator=generator)
        found[name] = folder / name / "checkpoint.pt"
        found[name].parent.mkdir()
        torch.save(state, found[name])
    return found


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in (("src", SENTENCES), ("ref", REFERENCES)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return ["--src", folder / "src", "--ref", folder / "ref"]
