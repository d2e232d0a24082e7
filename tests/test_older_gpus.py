"""Which versions fit the machine's GPUs: what `nvidia-smi` says decides it, for the scripts and for `owf doctor`."""

import json
import os
import subprocess
import sys

import pytest
from fairseq_for_tests import REPOSITORY

from owf_fairseq import cli
from owf_fairseq.doctor import installation
from owf_fairseq.doctor.gpus import Gpu, constraints, driver_gpus

USUAL, OLDER = "constraints.txt", "constraints-cuda12.txt"
ANSWERS = {
    "7.0, Tesla V100-SXM2-16GB": OLDER,
    "7.0, Tesla V100-SXM2-16GB\n8.0, NVIDIA A100-SXM4-40GB": OLDER,
    "7.2, Xavier": OLDER,
    "7.5, Tesla T4": USUAL,
    "9.0, NVIDIA H200": USUAL,
    "12.0, NVIDIA RTX 5090\n10.0, NVIDIA B200": USUAL,
    "6.1, NVIDIA GeForce GTX 1080": USUAL,  # torch for CUDA 12 does not run on it, either
    "[N/A], GPU": USUAL,
    "": USUAL,
}

each_answer = pytest.mark.parametrize(("answer", "file"), ANSWERS.items(), ids=lambda value: value.split(",")[0])


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Puts a program of that name on the PATH, which gives an answer to the one question."""

    def install(answer, status=0):
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        (tmp_path / "answer").write_text(f"{answer}\n" if answer else "")
        asked = "[[ $* = '--query-gpu=compute_cap,name --format=csv,noheader' ]] || exit 9"
        program.write_text(f"#!/bin/bash\n{asked}\ncat '{tmp_path}/answer'\nexit {status}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return install


@each_answer
def test_what_the_driver_says_decides(answer, file, nvidia_smi):
    nvidia_smi(answer)
    assert constraints(driver_gpus()) == file


def test_names_and_capabilities(nvidia_smi):
    nvidia_smi("7.0, Tesla V100-SXM2-16GB\n10.0, NVIDIA B200")
    assert driver_gpus() == (Gpu("Tesla V100-SXM2-16GB", (7, 0)), Gpu("NVIDIA B200", (10, 0)))


def test_a_driver_that_cannot_be_asked(nvidia_smi, monkeypatch):
    nvidia_smi('Field "compute_cap" is not a valid field to query.', status=2)
    assert driver_gpus() == ()
    monkeypatch.setenv("PATH", "/nowhere")
    assert constraints(driver_gpus()) == USUAL


@pytest.mark.parametrize(("answer", "file"), [("7.0, Tesla V100", OLDER), ("8.0, A100", USUAL)])
def test_the_scripts_install_what_fits(answer, file, nvidia_smi, tmp_path):
    """With a virtual environment that only notes what pip is to do."""
    nvidia_smi(answer)
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/bash\n[ "$2" != pip ] || {{ echo "$@" >>"{tmp_path}/pip"; exit; }}\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    environment = {**os.environ, "OWF_VENV": str(tmp_path / "venv")}
    script = f'. "{REPOSITORY}/scripts/lib.sh"; ensure_venv dev,plot'
    for installed in ("installing into", "installed in"):
        done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert installed in done.stdout
    (line,) = (line for line in (tmp_path / "pip").read_text().splitlines() if " install " in line and " -e " in line)
    assert f"-c {REPOSITORY}/{file} -e {REPOSITORY}[dev,plot]" in line


def test_the_doctor_names_the_file(nvidia_smi, monkeypatch, capsys):
    """Where torch for CUDA 13 finds a driver that is too old for it, and so sees no GPU."""
    nvidia_smi("7.0, Tesla V100-SXM2-16GB")
    imported = {"torch_version": "2.13.0", "torch_cuda": "13.0"}
    monkeypatch.setattr(installation, "_imports", lambda: imported)
    assert cli.main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["driver_gpus"] == [{"name": "Tesla V100-SXM2-16GB", "capability": [7, 0]}]
    (problem,) = (one for one in found["problems"] if "GPU" in one)
    assert "The driver names Tesla V100-SXM2-16GB (sm_70)" in problem
    assert f"`pip install -c {OLDER} .`" in problem
