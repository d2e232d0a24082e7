"""Two processes that train together (gloo, CPU) do what one does with twice as many batches an update."""

import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fairseq_for_tests import TRAINING, run
from models_for_tests import make_batch, make_model

from owf_fairseq import USER_DIR
from owf_fairseq.models.tied_weights import tied_names

ARCHS = ["owf_tiny_one_wide_ffn", "owf_tiny_shared_enc_dec", "owf_tiny_attention_sss"]
UPDATES = ["--max-update", "4", "--dropout", "0", "--optimizer", "sgd", "--lr", "0.1"]


def free_port():
    with contextlib.closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def train_together(data_bin, folder, *flags, expected=0, ddp_backend="legacy_ddp"):
    """As fairseq works on CPUs: started twice, by hand, with its own gradient averaging. Returns a log."""
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("fairseq-train")), str(data_bin), "--user-dir", USER_DIR,
        *TRAINING, *UPDATES, *flags, "--save-dir", str(folder), "--distributed-no-spawn", "--distributed-init-method", f"tcp://127.0.0.1:{port}",
        "--distributed-world-size", "2", "--distributed-backend", "gloo", "--ddp-backend", ddp_backend,
    ]  # fmt: skip
    processes = [
        subprocess.Popen(
            [*command, "--distributed-rank", str(rank)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in (0, 1)
    ]  # fmt: skip
    logs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [expected] * 2, logs[0][-3000:]
    return logs[0]


def losses(log):
    return [float(loss) for loss in re.findall(r"train_inner \|.*? loss=([\d.]+)", log)]


@pytest.mark.parametrize(("arch", "flags"), [(arch, []) for arch in ARCHS] + [(ARCHS[0], ["--checkpoint-activations"])])
def test_two_processes_equal_one(arch, flags, data_bin, tmp_path):
    together = train_together(data_bin, tmp_path / "two", "--arch", arch, *flags)
    alone = run(
        "train", data_bin, "--user-dir", USER_DIR, "--arch", arch, *TRAINING, *UPDATES, *flags, "--update-freq", "2",
        "--save-dir", tmp_path / "one",
    )  # fmt: skip
    assert len(losses(alone)) == 4
    assert losses(together) == pytest.approx(losses(alone), abs=2e-3)  # the log rounds to three decimals
    two, one = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True)["model"] for name in ("two", "one")
    )
    assert two.keys() == one.keys()
    weights = {
        name for name, _ in make_model(arch, "--share-all-embeddings").named_parameters()
    }  # 0.12.2 also saves an uninitialised buffer
    assert weights <= one.keys()
    for name in weights:
        value = one[name]
        assert torch.allclose(two[name], value, rtol=1e-4, atol=1e-6), name


def test_two_processes_equal_one_in_half_precision(data_bin, tmp_path):
    """Each rounds its own gradients, and the sum is rounded: equal as far as half precision goes."""
    flags = ["--arch", ARCHS[0], *UPDATES, "--fp16", "--fp16-no-flatten-grads"]
    together = train_together(data_bin, tmp_path / "two", *flags)
    one = ["--update-freq", "2", "--save-dir", tmp_path / "one"]
    alone = run("train", data_bin, "--user-dir", USER_DIR, *TRAINING, *flags, *one)
    assert "loss_scale=128" in together
    assert len(losses(alone)) == 4
    assert losses(together) == pytest.approx(losses(alone), abs=0.02)
    two, one = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True)["model"] for name in ("two", "one")
    )
    assert two.keys() == one.keys()
    model = make_model(ARCHS[0], "--share-all-embeddings")
    assert not {name for names in tied_names(model).values() for name in names} & two.keys()
    parameters = dict(model.named_parameters())
    assert all(torch.allclose(two[name], one[name], rtol=0.01, atol=2e-3) for name in parameters)


@pytest.mark.parametrize("flags", [["--optimizer", "adam"], ["--load-checkpoint-on-all-dp-ranks"]])
def test_two_processes_go_on(flags, data_bin, tmp_path):
    """Rank 0 sends what it has read to the others: flags, meters and the optimizer's state."""
    command = ["--arch", ARCHS[0], *flags, "--store-ema", "--eval-bleu", "--eval-bleu-args", '{"max_len_b": 3}']
    parts = ""
    for stop in ("3", "6"):
        parts += train_together(data_bin, tmp_path / "parts", *command, "--max-update", stop)
    whole = train_together(data_bin, tmp_path / "whole", *command, "--max-update", "6")
    assert "@ 3 updates" in parts
    assert losses(parts) == losses(whole)
    assert len(losses(whole)) == 6


def test_one_process_goes_on_where_two_were(data_bin, tmp_path):
    """The toy corpus has 8 batches: 3 of 4 for each of two processes are 6 of 8 for one."""
    train_together(data_bin, tmp_path, "--arch", ARCHS[0], "--max-update", "3")
    log = run(
        "train", data_bin, "--user-dir", USER_DIR, "--arch", ARCHS[0], *TRAINING, *UPDATES, "--max-update", "5",
        "--save-dir", tmp_path,
    )  # fmt: skip
    assert "3 batches of epoch 1 were read: going on after 6 of 8" in log
    assert len(losses(log)) == 2
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    assert state["extra_state"]["train_iterator"]["epoch"] == 2


def test_checkpointed_activations_of_shared_blocks_are_refused_with_torchs_ddp(data_bin, tmp_path):
    flags = ["--arch", "owf_tiny_one_wide_ffn", "--checkpoint-activations"]
    log = train_together(data_bin, tmp_path, *flags, expected=1, ddp_backend="pytorch_ddp")
    assert "`--checkpoint-activations` with shared blocks needs `--ddp-backend legacy_ddp`" in log
    assert not list(tmp_path.glob("*.pt"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_gradients_survive_torchs_ddp(dtype, tmp_path):
    """torch's DistributedDataParallel around a shared model, one process: the same gradients."""
    batch = make_batch([5, 3], [4, 6])
    gradients = []
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        for wrap in (lambda model: model, torch.nn.parallel.DistributedDataParallel):
            model = make_model("owf_tiny_shared_enc_dec").eval().to(dtype)
            wrap(model)(**batch)[0].float().log_softmax(-1)[..., 0].mean().backward()
            gradients.append([parameter.grad for parameter in model.parameters()])
    finally:
        torch.distributed.destroy_process_group()
    assert len(gradients[0]) > 50
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(*gradients, strict=True))
