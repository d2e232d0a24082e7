"""Checkpoints: shared weights stored once and refused where they are apart; what cannot be read is said plainly."""

import io
import os
import random
import sys
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from models_for_tests import TINY_ARCHS, all_weights, checkpoint_of, make_batch, make_model, parse

from owf_fairseq.checkpoints.checkpoint import read_checkpoint, write_checkpoint
from owf_fairseq.errors import InputError
from owf_fairseq.models.tied_weights import fill_in, tied_names
from owf_fairseq.parameters import _build

BATCH = make_batch([7, 3], [4, 6])


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_every_tensor_is_stored_once_and_read_back(arch):
    model, other = make_model(arch, "--share-all-embeddings"), make_model(arch, "--share-all-embeddings", seed=8)
    state = model.state_dict()
    assert len({tensor.data_ptr() for tensor in state.values() if tensor.numel() > 1}) == len(
        [tensor for tensor in state.values() if tensor.numel() > 1]
    )
    assert {name for name, _ in model.named_parameters()} <= set(state)
    kept = dict(state)
    other.load_state_dict(state, strict=True)
    assert dict(state) == kept  # what is read is not changed
    with torch.no_grad():
        assert torch.equal(other.eval()(**BATCH)[0], model.eval()(**BATCH)[0])


def test_a_missing_weight_is_still_an_error():
    model = make_model("owf_tiny_shared_enc")
    state = model.state_dict()
    del state["encoder.layers.0.fc1.weight"]
    with pytest.raises(RuntimeError, match="encoder.layers.0.fc1.weight"):
        model.load_state_dict(state, strict=True)


def test_equal_copies_load_and_different_ones_are_refused_by_name():
    model = make_model("owf_tiny_shared_enc")
    copies = {name: tensor.clone() for name, tensor in all_weights(model).items()}
    model.load_state_dict(copies, strict=True)
    copies["encoder.layers.3.fc1.weight"][5, 7] += 0.25
    copies["encoder.layers.4.fc2.bias"][0] = float("nan")
    before = model.encoder.layers[0].fc1.weight.clone()
    for strict in (True, False):
        with pytest.raises(InputError) as error:
            model.load_state_dict(copies, strict=strict)
        weight, bias, way_out = error.value.problems
        assert "encoder.layers.0.fc1.weight and encoder.layers.3.fc1.weight are one weight" in weight
        assert weight.endswith("differ by up to 0.25")
        assert "encoder.layers.4.fc2.bias" in bias
        assert bias.endswith("differ by up to inf")
        assert "the arch that it was trained with" in way_out
        assert "`owf convert CHECKPOINT --to ARCH --output FILE`" in way_out
    assert torch.equal(model.encoder.layers[0].fc1.weight, before)


def test_an_individual_checkpoint_does_not_load_into_a_model_that_shares():
    with pytest.raises(InputError, match="are one weight in this model"):
        make_model("owf_tiny_shared_enc_dec").load_state_dict(make_model("owf_tiny").state_dict())


def test_a_further_name_alone_is_enough():
    model = make_model("owf_tiny_shared_enc")
    state = model.state_dict()
    value = state.pop("encoder.layers.0.fc1.weight")
    state["encoder.layers.2.fc1.weight"] = value
    assert fill_in(model, state)["encoder.layers.5.fc1.weight"] is not None
    model.load_state_dict(state, strict=True)


def test_names_are_those_of_the_first_layer_that_uses_the_tensor():
    further = tied_names(make_model("owf_tiny_cycle_2"))
    assert further["encoder.layers.1.fc2.bias"] == ["encoder.layers.3.fc2.bias", "encoder.layers.5.fc2.bias"]
    assert "encoder.layers.4.final_layer_norm.weight" in further["encoder.layers.0.final_layer_norm.weight"]
    assert not any(name.startswith("decoder.layers") for name in further)


def test_one_wide_big_is_stored_once():
    model = _build("owf_big_one_wide_ffn", 50408, {"share_all_embeddings": True})
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert sum(tensor.numel() for tensor in model.state_dict().values()) <= 1.01 * parameters
    fairseqs = sum(tensor.numel() for tensor in all_weights(model).values())
    assert fairseqs > 3.5 * parameters


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint, with another one beside it."""
    state = checkpoint_of(make_model("owf_tiny_no_dec"), parse("owf_tiny_no_dec"))
    torch.save(state, tmp_path / "checkpoint_last.pt")
    torch.save(state, tmp_path / "checkpoint3.pt")
    return tmp_path / "checkpoint_last.pt"


def problem_of(path):
    with pytest.raises(InputError) as error:
        read_checkpoint(path)
    (problem,) = error.value.problems
    assert str(path) in problem
    assert "\n" not in problem
    return problem


def cut(content):
    return content[: len(content) // 2]


def flip_a_bit_of_a_weight(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"", "is empty"),
        (cut, "is cut off or damaged"),
        (lambda content: content[:-50], "is cut off or damaged"),
        (flip_a_bit_of_a_weight, "is damaged (the checksum of"),
        (lambda content: b"\x80\x02" + content[:99], "is cut off or damaged"),
    ],
)
def test_damaged_file_is_told_with_a_way_on(checkpoint, damage, reason):
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    problem = problem_of(checkpoint)
    assert reason in problem
    assert "another checkpoint of the same training (checkpoint3.pt), and give it to fairseq-train as" in problem
    assert "`--restore-file`" in problem


@pytest.mark.parametrize("byte", [0xFF, 0x0A])  # the first is no UTF-8
def test_a_wrong_byte_in_a_name_of_the_directory_is_damage(checkpoint, byte):
    content = bytearray(checkpoint.read_bytes())
    content[content.rindex(b"/data/0") + 1] = byte
    checkpoint.write_bytes(content)
    assert "damaged (" in problem_of(checkpoint)


def test_any_wrong_byte_is_harmless_or_told(checkpoint):
    content, whole = checkpoint.read_bytes(), read_checkpoint(checkpoint)["model"]
    rng, told = random.Random(5), 0
    directory, end = content.index(b"PK\x01\x02"), len(content)
    for position in [*range(30), *range(directory, directory + 46), *rng.sample(range(directory, end), 45), end - 1]:
        damaged = bytearray(content)
        damaged[position] ^= rng.choice([0xFF, *(1 << bit for bit in range(8))])
        checkpoint.write_bytes(damaged)
        with suppress(InputError):
            read_checkpoint(checkpoint, read_tensors=False)
        try:
            model = read_checkpoint(checkpoint)["model"]
        except InputError:
            told += 1
        else:
            assert model.keys() == whole.keys()
            assert all(torch.equal(model[name], whole[name]) for name in whole), position
    assert told > 20


def test_what_is_beside_and_cannot_be_read_is_not_named(checkpoint, tmp_path, monkeypatch):
    (tmp_path / "checkpoint_best.pt").symlink_to(tmp_path / "nothing.pt")
    (tmp_path / "checkpoint_folder.pt").mkdir()
    (tmp_path / "checkpoint_empty.pt").touch()
    checkpoint.write_bytes(b"")
    assert "same training (checkpoint3.pt), and" in problem_of(checkpoint)
    assert problem_of(tmp_path / "none.pt").endswith("; beside it: checkpoint3.pt")
    assert "No such file" in problem_of(tmp_path / "checkpoint_best.pt")
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [folder / "checkpoint9.pt", *glob(folder, pattern)])
    assert "same training (checkpoint3.pt), and" in problem_of(checkpoint)  # 9 has just been removed


def test_other_files_are_told_apart(checkpoint, tmp_path):
    assert problem_of(tmp_path / "none.pt").endswith(
        "can't be read: No such file or directory; beside it: checkpoint3.pt, checkpoint_last.pt"
    ) or "checkpoint_last.pt, checkpoint3.pt" in problem_of(tmp_path / "none.pt")
    assert "is a folder: name a checkpoint in it" in problem_of(tmp_path)
    text = tmp_path / "text.pt"
    text.write_text("text")
    assert "is not a file that torch has written" in problem_of(text)
    state = read_checkpoint(checkpoint)
    for content, reason in (
        (state["model"], "weights alone"),
        ({"model": {"a": 1}}, "something else than tensors"),
        ({"model": state["model"]}, "not the flags of its model"),
        ([1], "is not a fairseq checkpoint"),
    ):
        torch.save(content, text)
        assert reason in problem_of(text)


def test_another_zip_is_no_damaged_checkpoint(tmp_path):
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    path = (tmp_path / "arrays.npz").rename(tmp_path / "checkpoint_arrays.pt")
    assert "is not a file that torch has written: name a checkpoint" in problem_of(path)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("model", [1], "has no `model`"), ("model", {1: torch.zeros(1)}, "`model` holds something else"),
        ("cfg", "flags", "`cfg` is a str"), ("cfg", {"model": ["arch"]}, "`cfg.model` is a list"),
        ("cfg", {"checkpoint": 1}, "`cfg.checkpoint` is an int"), ("args", ["--arch"], "`args` is a list"),
        ("extra_state", [1], "`extra_state` is a list"),
        ("extra_state", {"train_iterator": 3}, "`extra_state.train_iterator` is an int"),
        ("optimizer_history", {}, "`optimizer_history` is a dict"),
        ("optimizer_history", [3], "`optimizer_history` holds an int"),
    ],
)  # fmt: skip
def test_what_has_another_form_is_refused(checkpoint, name, value, reason):
    torch.save({**read_checkpoint(checkpoint), name: value}, checkpoint)
    for read_tensors in (True, False):
        with pytest.raises(InputError, match=f"is not a .*checkpoint.*: .*{reason}"):
            read_checkpoint(checkpoint, read_tensors=read_tensors)


class RunsCode:
    def __reduce__(self):
        return os.mkdir, ("made-by-the-checkpoint",)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_that_would_run_code_is_refused(checkpoint, tmp_path, monkeypatch, legacy):
    monkeypatch.chdir(tmp_path)
    state = read_checkpoint(checkpoint)
    bad = tmp_path / "bad.pt"
    torch.save({**state, "extra_state": RunsCode()}, bad, _use_new_zipfile_serialization=not legacy)
    problem = problem_of(bad)
    assert "mkdir would be called" in problem
    assert "that can run any code" in problem
    assert problem.endswith("get the file again from where you trust it")
    assert not (tmp_path / "made-by-the-checkpoint").exists()


def test_objects_of_an_old_fairseq_are_told_apart(checkpoint, monkeypatch):
    meter = type("AverageMeter", (), {"__module__": "fairseq.old"})
    monkeypatch.setitem(sys.modules, "fairseq.old", types.SimpleNamespace(AverageMeter=meter))
    state = {**read_checkpoint(checkpoint), "extra_state": {"m": meter()}}
    for zipped in (True, False):
        torch.save(state, checkpoint, _use_new_zipfile_serialization=zipped)
        problem = problem_of(checkpoint)
        assert "fairseq.old.AverageMeter would be called" in problem
        assert "(before 0.9) stored such objects of its own; a copy with only `model` and `args` or `cfg`" in problem


def test_checkpoint_of_an_old_torch_is_read(checkpoint, tmp_path):
    state = {**read_checkpoint(checkpoint), "extra_state": None, "optimizer_history": None}  # may be missing
    torch.save(state, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert torch.equal(
        read_checkpoint(tmp_path / "old.pt")["model"]["encoder.layers.0.fc1.weight"],
        state["model"]["encoder.layers.0.fc1.weight"],
    )


def test_writing_is_whole_or_not_at_all_and_replaces_only_its_own(checkpoint, tmp_path, monkeypatch):
    state = read_checkpoint(checkpoint)
    output = tmp_path / "new" / "out.pt"
    write_checkpoint(state, output, "owf test")
    write_checkpoint(state, output, "owf test")
    content = output.read_bytes()
    for path, tool in ((output, "owf other"), (checkpoint, "owf test"), (tmp_path, "owf test")):
        with pytest.raises(InputError, match="exists, and `owf .*` did not make it|is a folder"):
            write_checkpoint(state, path, tool)

    def fail(state, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(InputError, match="`--output` .*out.pt can.t be written: disk full"):
        write_checkpoint(state, output, "owf test")
    assert output.read_bytes() == content
    assert list(output.parent.iterdir()) == [output]


def test_what_is_written_is_as_large_as_what_is_kept(checkpoint, tmp_path):
    """A tensor that was read from the disk must not take the whole file along."""
    state = read_checkpoint(checkpoint)
    state["model"] = {name: tensor for name, tensor in state["model"].items() if "embed" in name}
    write_checkpoint(state, tmp_path / "out.pt", "owf test")
    buffer = io.BytesIO()
    torch.save({name: tensor.clone() for name, tensor in state["model"].items()}, buffer)
    assert (tmp_path / "out.pt").stat().st_size < buffer.tell() + 20000
