"""COMET: a damaged model is found before it scores, and what is no number is no score."""

import shutil

import pytest
import torch
from evaluation_for_tests import SOURCE, TRANSLATION

from owf_fairseq.errors import InputError
from owf_fairseq.scoring.comet_checkpoint import check_comet_checkpoint, find_model

pytest.importorskip("comet")


@pytest.fixture
def checkpoint(tiny_comet, tmp_path):
    """A copy of a tiny model's checkpoint."""
    folder = tiny_comet if tiny_comet.is_dir() else tiny_comet.parents[1]
    shutil.copytree(folder, tmp_path / "model")
    (path,) = (tmp_path / "model" / "checkpoints").glob("*.ckpt")
    return path


def test_one_wrong_bit_is_found(checkpoint):
    assert check_comet_checkpoint(checkpoint).weights
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    name, weight = max(state["state_dict"].items(), key=lambda item: item[1].numel())
    content = bytearray(checkpoint.read_bytes())
    content[content.index(weight.numpy().tobytes()) + 7] ^= 1 << 6
    checkpoint.write_bytes(content)
    with pytest.raises(InputError, match="is damaged .the checksum of .* is wrong"):
        check_comet_checkpoint(checkpoint)


def test_a_torchscript_archive_is_called_what_it_is(checkpoint):
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), checkpoint)
    with pytest.raises(InputError, match="is a TorchScript archive") as error:
        check_comet_checkpoint(checkpoint)
    assert "weights_only" not in str(error.value)


def test_a_score_that_is_no_number_is_refused(checkpoint, monkeypatch):
    model = find_model(str(checkpoint), cpu=True)()
    with torch.no_grad():
        for weight in model.model.parameters():
            weight.fill_(float("nan"))
    with pytest.raises(InputError, match="gives line 1 the score nan, which is none"):
        model.segment_scores(SOURCE[:2], TRANSLATION[:2], TRANSLATION[:2] if model.needs_references else None)
