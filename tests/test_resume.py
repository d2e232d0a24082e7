"""Saving and loading through fairseq's real commands: sizes, resuming, and what they do with a damaged checkpoint."""

import io
import re
import shutil
from argparse import Namespace

import pytest
import torch
from fairseq import checkpoint_utils, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from fairseq_for_tests import DECODING, TRAINING, generated_ids, run, spawn
from models_for_tests import all_weights, parse, trained_weights

from owf_fairseq import USER_DIR
from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.checkpoints.stored_model import describe_state
from owf_fairseq.errors import InputError
from owf_fairseq.resuming import place_in_epoch

USER = ["--user-dir", USER_DIR]
ARCH = ["--arch", "owf_tiny_one_wide_ffn"]


def size_of(part):
    buffer = io.BytesIO()
    torch.save(part, buffer)
    return buffer.tell()


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("ema", [False, True])
def test_trainer_saves_each_tensor_once(precision, ema, data_bin, tmp_path):
    """fairseq moves a state to the CPU and to float32 tensor by tensor, which breaks the sharing of memory."""
    flags = ["--encoder-ffn-embed-dim", "16384", *(["--store-ema"] if ema else [])]
    args = parse("owf_tiny_one_wide_ffn", *TRAINING, *flags)
    args.data = str(data_bin)
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    trainer = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    trainer.optimizer  # noqa: B018  built when it is first asked for
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if precision == "float16":
        model.half()
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(str(tmp_path / "checkpoint.pt"), {})
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert {tensor.dtype for tensor in state["model"].values()} == {torch.float32}
    assert parameters * 4 < size_of(state["model"]) <= 1.01 * 4 * parameters + 100 * len(state["model"])
    stored = sum(tensor.numel() for tensor in state["model"].values())
    assert stored <= 1.01 * parameters
    fairseqs = sum(tensor.numel() for tensor in all_weights(model).values())
    assert fairseqs > 3.7 * parameters
    if ema:
        assert state["extra_state"]["ema"].keys() == state["model"].keys()
        assert sum(tensor.numel() for tensor in state["extra_state"]["ema"].values()) == stored


def test_save_async(data_bin, tmp_path):
    pytest.importorskip("iopath", reason="--save-async needs iopath, which nothing of ours installs")
    run("train", data_bin, *USER, *ARCH, *TRAINING, "--max-update", "1", "--save-async", "--save-dir", tmp_path)
    state = read_checkpoint(tmp_path / "checkpoint_best.pt")  # without our help fairseq writes rubbish
    assert "encoder.layers.0.fc1.weight" in state["model"]
    assert "encoder.layers.1.fc1.weight" not in state["model"]


def test_what_is_saved_asynchronously_is_a_copy(tmp_path):
    """The same without iopath: its file keeps what it is handed, and looks at it later."""

    class LateFile:
        def __init__(self):
            self.handed = []

        def write(self, data):
            self.handed.append(data)
            return len(data)

    LateFile.__module__ = "iopath.common.file_io"
    file = LateFile()
    checkpoint_utils._torch_persistent_save({"model": {"weight": torch.ones(1000)}}, file)
    assert all(isinstance(data, bytes) for data in file.handed)
    assert torch.equal(torch.load(io.BytesIO(b"".join(file.handed)))["model"]["weight"], torch.ones(1000))
    with open(tmp_path / "plain.pt", "wb") as plain:
        checkpoint_utils._torch_persistent_save({"a": 1}, plain)
    assert torch.load(tmp_path / "plain.pt") == {"a": 1}


def losses(log):
    """The loss of each update, by its number."""
    return {int(number): loss for loss, number in re.findall(r" loss=([\d.]+),.*? num_updates=(\d+),", log)}


@pytest.mark.parametrize("arch", ["owf_tiny_one_wide_ffn", "owf_tiny_shared_enc_dec", "owf_tiny_attention_sss"])
def test_resumed_training_has_the_losses_of_an_uninterrupted_one(arch, data_bin, tmp_path):
    """With dropout and Adam's moments, in the middle of an epoch and across its end (8 updates)."""
    training = [data_bin, *USER, "--arch", arch, *TRAINING, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "4"]
    whole = losses(run("train", *training, "--max-update", "12", "--save-dir", tmp_path / "whole"))
    parts = {}
    for stop in (3, 7, 12):
        parts |= losses(run("train", *training, "--max-update", str(stop), "--save-dir", tmp_path / "parts"))
    assert len(whole) == 12
    assert parts == whole
    one, other = (
        trained_weights(read_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"]) for name in ("whole", "parts")
    )
    assert len(one) > 100
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("flags", "skipped", "rest"),
    [
        (["--batch-size", "16"], "after 3 of 4", 1),  # fairseq: "Cannot resume training due to dataloader mismatch"
        (["--batch-size", "4"], "after 12 of 16", 4),  # it would go back by 6 of 16 batches
        (["--update-freq", "4"], "after 4 of 8", 1),  # it would have no update to make, and fail
        (["--batch-size", "4", "--update-freq", "2"], "after 12 of 16", 2),
    ],
)
def test_batches_of_another_size_go_on_at_the_same_share_of_the_epoch(flags, skipped, rest, data_bin, tmp_path):
    """Interrupted after 6 of 8 batches: the epoch has as many updates left as are in a quarter of it."""
    training = [data_bin, *USER, *ARCH, "--encoder-layers", "1", *TRAINING, "--save-dir", tmp_path]
    run("train", *training, "--max-update", "6")
    log = run("train", *training, *flags, "--max-epoch", "1", "--disable-validation")
    assert f"6 batches of epoch 1 were read: going on {skipped}" in log
    assert len(losses(log)) == rest
    log = run("train", *training, *flags, "--max-update", str(6 + rest + 1), "--disable-validation")
    assert "batches of epoch" not in log  # the next epoch is whole
    assert len(losses(log)) == 1


@pytest.mark.parametrize(
    ("position", "before", "now", "update_freq", "place"),
    [
        (6, 8, 8, 1, 6),
        (6, 8, 8, 2, 6),
        (6, None, 8, 2, 6),
        (6, 8, 80, 1, 60),
        (6, 8, 79, 4, 60),
        (79, 80, 8, 1, 7),  # something is left of the epoch
        (79, 80, 8, 8, 0),
        (1, 80, 8, 1, 0),
        (8, 8, 8, 1, 8),
    ],
)
def test_place_in_epoch(position, before, now, update_freq, place):
    assert place_in_epoch(position, before, now, update_freq) == place


def test_a_checkpoint_that_does_not_tell_its_share(copied, data_bin):
    """One of plain fairseq, or of an earlier version."""

    def forget(state):
        state["extra_state"]["train_iterator"] |= {"epoch": 1, "iterations_in_epoch": 6}

    edit(copied / "checkpoint_last.pt", forget)
    training = [data_bin, *USER, *ARCH, *TRAINING, "--max-epoch", "1", "--save-dir", copied]
    with pytest.raises(
        InputError, match=r"after 6 batches of its epoch, of which there are 2 now: give the batch size"
    ):
        run("train", *training, "--batch-size", "32")
    assert len(losses(run("train", *training))) == 2


@pytest.fixture
def copied(trained, tmp_path):
    """A copy of a training's folder."""
    shutil.copytree(trained, tmp_path / "copied")
    return tmp_path / "copied"


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_training_does_not_start_again_from_a_damaged_checkpoint(keep, copied, data_bin):
    last = copied / "checkpoint_last.pt"
    content = last.read_bytes()
    last.write_bytes(content[: int(len(content) * keep)])
    before = {file.name: file.read_bytes() for file in copied.iterdir()}
    training = [data_bin, *USER, *ARCH, *TRAINING, "--max-update", "10", "--save-dir", copied]
    with pytest.raises((EOFError, RuntimeError)):
        run("train", *training)
    assert {file.name: file.read_bytes() for file in copied.iterdir()} == before
    # the way on that our tools name
    log = run("train", *training, "--restore-file", copied / "checkpoint1.pt")
    assert "@ 8 updates" in log
    assert "num_updates 10" in log
    assert read_checkpoint(last)["optimizer_history"][-1]["num_updates"] == 10


def edit(path, change):
    state = read_checkpoint(path)
    change(state)
    torch.save(state, path)


def test_optimizer_state_of_half_precision_is_not_taken_for_another(copied, data_bin):
    """A CPU cannot train with --fp16: the name of the optimizer is what fairseq compares."""

    def claim_half_precision(state):
        state["optimizer_history"][-1]["optimizer_name"] = "FP16Optimizer"

    edit(copied / "checkpoint_last.pt", claim_half_precision)
    training = [data_bin, *USER, *ARCH, *TRAINING, "--max-update", "10", "--save-dir", copied]
    with pytest.raises(
        AssertionError, match=r"please reset the optimizer \(--reset-optimizer\). FP16Optimizer vs Fair"
    ):
        run("train", *training)
    log = run("train", *training, "--reset-optimizer", "--reset-lr-scheduler")
    assert "Loaded checkpoint" in log
    assert "num_updates=1," in log  # a fresh optimizer counts from 0


def test_a_user_dir_that_has_moved_does_no_harm(copied, data_bin):
    """What fairseq has recorded is not looked at: --user-dir on the command line is what counts."""

    def move(state):
        state["cfg"]["common"]["user_dir"] = state["cfg"]["model"].user_dir = "moved/owf_fairseq"

    path = copied / "checkpoint_last.pt"
    edit(path, move)
    assert describe_state(read_checkpoint(path), str(path)).arch == "owf_tiny_one_wide_ffn"
    output = run("generate", data_bin, "--path", path, *USER, *DECODING)
    assert generated_ids(output) == list(range(8))
    log = run("train", data_bin, *USER, *ARCH, *TRAINING, "--max-update", "9", "--save-dir", copied)
    assert "num_updates 9" in log


def test_an_untied_checkpoint_is_refused_with_the_way_out(copied, data_bin, tmp_path):
    def untie(state):
        state["model"]["encoder.layers.2.fc1.bias"] = state["model"]["encoder.layers.0.fc1.bias"] + 1

    edit(copied / "checkpoint_last.pt", untie)
    refused = spawn("train", data_bin, *USER, *ARCH, *TRAINING, "--max-update", "9", "--save-dir", copied, cwd=tmp_path)
    assert refused.returncode != 0
    assert "encoder.layers.0.fc1.bias and encoder.layers.2.fc1.bias are one weight in this model" in refused.stderr
    assert "`owf convert CHECKPOINT --to ARCH --output FILE`" in refused.stderr


def test_every_checkpoint_that_training_writes_is_read(data_bin, tmp_path):
    training = [data_bin, *USER, *ARCH, *TRAINING, "--save-interval-updates", "2", "--keep-best-checkpoints", "2"]
    training += ["--store-ema", "--ema-fp32", "--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 5}']
    for stop in ("3", "9"):
        run("train", *training, "--max-update", stop, "--save-dir", tmp_path)
    files = {file.name for file in tmp_path.glob("*.pt")}
    assert {"checkpoint_last.pt", "checkpoint_best.pt", "checkpoint1.pt", "checkpoint_1_2.pt"} <= files
    assert any(name.startswith("checkpoint.best_loss_") for name in files)
    for name in sorted(files):
        model = describe_state(read_checkpoint(tmp_path / name), name)
        assert not model.faults
        assert isinstance(model.args, Namespace)


def test_vanilla_checkpoint_goes_on_as_the_individual_model(data_bin, tmp_path):
    """A checkpoint of fairseq's own transformer, through the real commands."""
    size = "--encoder-embed-dim 64 --encoder-ffn-embed-dim 128".split()
    size += "--encoder-attention-heads 2 --decoder-attention-heads 2".split()
    vanilla = run(
        "train", data_bin, "--arch", "transformer", *size, *TRAINING, "--max-update", "4", "--save-dir", tmp_path / "a"
    )
    whole = run(
        "train", data_bin, *USER, "--arch", "owf_tiny", *TRAINING, "--max-update", "8", "--save-dir", tmp_path / "b"
    )
    assert [losses(vanilla)[number] for number in range(1, 5)] == [losses(whole)[number] for number in range(1, 5)]
    resumed = run(
        "train", data_bin, *USER, "--arch", "owf_tiny", *TRAINING, "--max-update", "8", "--save-dir", tmp_path / "c",
        "--restore-file", tmp_path / "a/checkpoint_last.pt", "--reset-optimizer",
    )  # fmt: skip
    assert "num_updates 8" in resumed or "num_updates=8" in resumed
