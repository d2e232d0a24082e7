"""`owf train` on a toy corpus: it trains, goes on, says what it runs, and refuses what it cannot do right."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from fairseq import checkpoint_utils
from fairseq_for_tests import REPOSITORY
from test_two_processes import free_port, losses

from owf_fairseq import USER_DIR, cli
from owf_fairseq.checkpoints.checkpoint import read_checkpoint

CONFIG = """
arch: owf_tiny_one_wide_ffn
task: translation
share-all-embeddings: true
optimizer: adam
lr: 0.01
lr-scheduler: inverse_sqrt
criterion: label_smoothed_cross_entropy
dropout: 0
batch-size: 8
update-freq: 4
max-update: 4
required-batch-size-multiple: 1
num-workers: 0
log-format: simple
log-interval: 1
seed: 1
cpu: true
"""


@pytest.fixture
def folder(data_bin, tmp_path, monkeypatch):
    """The current folder: a config, and the toy data."""
    (tmp_path / "row.yaml").write_text(f"{CONFIG}data: {data_bin}\nsave-dir: model\n")
    monkeypatch.chdir(tmp_path)
    for name in ("MASTER_ADDR", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def owf(folder, capsys, caplog):
    """Runs `owf train row.yaml`; returns the status, what was printed, and fairseq's log."""

    def run(*words, config="row.yaml"):
        vars(checkpoint_utils.save_checkpoint).pop("best", None)  # fairseq keeps the best score for the whole process
        caplog.clear()
        with caplog.at_level("INFO"):
            status = cli.main(["train", config, *words])
        out, err = capsys.readouterr()
        return status, out, err, "\n".join(f"{record.name} | {record.getMessage()}" for record in caplog.records)

    return run


def updates(path):
    return read_checkpoint(path)["optimizer_history"][-1]["num_updates"]


def record(folder="model"):
    return yaml.load(Path(folder, "resolved.yaml").read_text(), Loader=yaml.BaseLoader)


def test_it_trains_records_and_goes_on(owf, data_bin):
    status, out, err, log = owf("--lr", "0.02")
    assert status == 0
    assert out.startswith(f"fairseq-train {data_bin} --user-dir {USER_DIR} ")
    assert "an update has up to 32 sentences: 8 a batch x 1 process x --update-freq 4" in err
    assert updates("model/checkpoint_last.pt") == 4
    assert read_checkpoint("model/checkpoint_last.pt")["cfg"]["optimization"]["lr"] == [0.02]
    written = record()
    assert written["config"] == "row.yaml"
    assert written["flags"]["data"] == str(data_bin)
    assert (written["flags"]["lr"], written["flags"]["cpu"]) == ("0.02", "true")
    assert written["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]  # the build, if it is known
    assert any("fairseq" in name for name in written["versions"] if name != "owf_fairseq")

    status, _, _, log = owf("--lr", "0.02", "--max-update", "8")
    assert status == 0
    assert "Loaded checkpoint model/checkpoint_last.pt" in log
    assert "@ 4 updates" in log
    assert updates("model/checkpoint_last.pt") == 8
    assert record()["flags"]["max-update"] == "8"


def test_another_training_does_not_go_on_from_these_checkpoints(owf, folder):
    assert owf()[0] == 0
    before = {file.name: file.read_bytes() for file in Path("model").iterdir()}
    status, out, err, _ = owf("--lr", "0.02", "--update-freq", "2", "--weight-decay", "0.1", "--max-update", "8")
    assert (status, out) == (2, "")
    assert err == (
        "owf train: error: model has checkpoints of a training with other settings: lr 0.02 (before: 0.01); "
        "weight-decay 0.1 (before: not given); size of an update 16 (before: 32). Give those settings, another "
        "`--save-dir`, or remove model/resolved.yaml to go on nevertheless\n"
    )
    assert {file.name: file.read_bytes() for file in Path("model").iterdir()} == before
    # as large an update of other batches, as with other GPUs, is the same training
    assert owf("--batch-size", "4", "--log-interval", "2", "--max-update", "5")[0] == 0
    assert record()["flags"]["update-freq"] == "8"
    (folder / "model/resolved.yaml").write_text("flags: 3\n")
    assert "model/resolved.yaml can't be read" in owf()[2]
    for checkpoint in Path("model").glob("*.pt"):
        checkpoint.unlink()
    assert owf("--lr", "0.02", "--max-update", "1")[0] == 0  # nothing to go on from


def test_a_dry_run_prints_a_command_that_runs_when_pasted(owf, folder):
    status, out, err, log = owf("--dry-run", "--adam-betas", "(0.9, 0.98)", "--save-dir", "a folder")
    assert (status, log) == (0, "")
    assert not (folder / "a folder").exists()
    assert "--save-dir 'a folder'" in out
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    pasted = subprocess.run(["bash", "-c", out], env=environment, capture_output=True, text=True, timeout=300)
    assert pasted.returncode == 0, pasted.stderr[-2000:]
    assert updates("a folder/checkpoint_last.pt") == 4
    # it is the training that owf train runs
    log = owf("--adam-betas", "(0.9, 0.98)")[3]
    assert len(losses(pasted.stdout)) == 4
    assert losses(pasted.stdout) == losses(log)


def test_what_stands_in_the_way_is_told_at_once(owf, folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "host[1-2]")
    monkeypatch.setenv("SLURM_NNODES", "2")
    monkeypatch.setenv("SLURM_PROCID", "1")
    status, out, err, _ = owf("--fp16", "--data", "nowhere:data", "--save-dir", "file/model")
    assert (status, out) == (2, "")
    assert [line.removeprefix("owf train: error: ") for line in err.splitlines()] == [
        "half precision (fp16) needs a GPU, and `--cpu` is given: add `--fp32`",
        "there are no data in nowhere: make them (`owf prepare`), or name them, `--data DIR`",
        "there are no data in data: make them (`owf prepare`), or name them, `--data DIR`",
        "fairseq connects the processes of a SLURM job only through a port that is free on the first node: add "
        "`--distributed-port`, for example 29500",
        f"`--save-dir` file/model/resolved.yaml can't be written: {folder}/file is not a folder that can be written to",
    ]
    assert owf("--fp16", "--dry-run")[0] == 0  # it will run elsewhere


def test_fp32_takes_fp16_back(owf):
    assert owf("--fp16", "--fp32", "--max-update", "1")[0] == 0
    assert "fp16" not in record()["flags"]


@pytest.mark.parametrize("flags", [["--memory-efficient-fp16"], ["--fp16", "--fp16-no-flatten-grads"]])
def test_half_precision_on_a_cpu_where_fairseq_has_it(flags, owf):
    status, _, err, log = owf(*flags, "--max-update", "2")
    assert status == 0, err
    assert "loss_scale=128" in log


def test_bfloat16_is_for_tpus(owf):
    status, _, err, _ = owf("--memory-efficient-bf16")
    assert status == 2
    assert "`--memory-efficient-bf16` is for TPUs in fairseq-train, and torch_xla" in err


def test_torchrun_needs_gpus(owf, monkeypatch):
    for name, value in {"MASTER_ADDR": "host", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    status, _, err, _ = owf()
    assert status == 2
    assert "under torchrun fairseq needs a GPU for each process" in err


def test_fairseqs_own_failures_stay_as_they_are(owf, folder):
    (folder / "empty").mkdir()
    with pytest.raises(Exception, match="Could not infer language pair"):
        owf("--data", "empty", "--save-dir", "other")


OWF = "import sys; sys.argv[0] = 'owf'; from owf_fairseq.cli import main; sys.exit(main())"


def start(*words, code=OWF, **options):
    """Starts `owf` as a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", code, "train", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, **options,
    )  # fmt: skip


GLOO = ["--distributed-world-size", "2", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]


def test_two_processes_train_as_one(owf):
    """Started by hand, as fairseq works on CPUs."""
    flags = ["row.yaml", *GLOO, "--distributed-no-spawn", "--distributed-init-method", f"tcp://127.0.0.1:{free_port()}"]
    processes = [start(*flags, "--save-dir", "two", "--distributed-rank", str(rank)) for rank in (0, 1)]
    logs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], logs[0][-3000:]
    assert [log.count("fairseq-train ") for log in logs] == [1, 0]
    assert (record("two")["flags"]["update-freq"], record("two")["processes"]) == ("2", "2")
    assert record("two")["flags"]["distributed-rank"] == "0"
    alone = owf("--save-dir", "one")[3]
    assert len(losses(alone)) == 4
    assert losses(logs[0]) == pytest.approx(losses(alone), abs=2e-3)  # the log rounds to three decimals
    one, two = (read_checkpoint(f"{name}/checkpoint_last.pt")["model"] for name in ("one", "two"))
    trained = [name for name in one if name.endswith(("weight", "bias"))]
    assert len(trained) > 50
    assert all(torch.allclose(one[name], two[name], rtol=1e-3, atol=1e-5) for name in trained)


def test_processes_that_fairseq_starts_itself(folder):
    """One for each GPU of a machine; here, of one that only says that it has two."""
    program = folder / "owf"
    program.write_text(
        f"import sys\nsys.path[:] = {sys.path!r}\n"
        "import torch\ntorch.cuda.device_count = lambda: 2\n"
        "from owf_fairseq.cli import main\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    process = subprocess.run(
        [sys.executable, program, "train", "row.yaml", *GLOO],
        capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-3000:]
    assert re.search(r"\d \| INFO \| fairseq_cli.train \| done training", process.stdout)  # in fairseq-train's form
    assert updates("model/checkpoint_last.pt") == 4
    assert record()["flags"]["update-freq"] == "2"


def test_an_installed_copy_has_the_configs(tmp_path):
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, source)
    shutil.copytree(REPOSITORY / "configs", source / "configs")
    shutil.copytree(
        USER_DIR, source / "owf_fairseq", symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
    )  # building in the checkout would leave a folder there
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*command, installed, source], check=True)
    code = f"import sys; sys.path.insert(0, {str(installed)!r}); {OWF}"
    process = start("wmt22_en_de/big_one_wide_ffn", "--dry-run", code=code, cwd=tmp_path)
    log = process.communicate(timeout=300)[0]
    assert process.returncode == 0, log
    assert f"--user-dir {installed / 'owf_fairseq'} " in log
    assert "--arch owf_big_one_wide_ffn" in log
    names = {file.relative_to(REPOSITORY / "configs") for file in (REPOSITORY / "configs").rglob("*.yaml")}
    there = installed / "owf_fairseq/configs"
    assert {file.relative_to(there) for file in there.rglob("*.yaml")} == names
