"""fairseq's own commands with `--user-dir`, each as a process of its own, as a user types them."""

import os
import shutil
import subprocess
import sys

import pytest
from fairseq_for_tests import DECODING, REPOSITORY, TRAINING, generated_ids, spawn

from owf_fairseq import USER_DIR


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package installed from a wheel, to be put on PYTHONPATH."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source")  # building in the checkout would leave a folder there
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, source)
    shutil.copytree(USER_DIR, source / "owf_fairseq", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--target",
            folder,
            source,
        ],
        check=True,
    )
    return folder


def test_train_resume_generate_and_interactive_from_another_folder(data_bin, tmp_path):
    """Relative and absolute user-dir; the checkpoint remembers it as it was typed."""
    relative = os.path.relpath(USER_DIR, tmp_path)
    training = [data_bin, "--arch", "owf_tiny_one_wide_ffn", *TRAINING, "--save-dir", "here"]

    first = spawn("train", *training, "--user-dir", relative, "--max-update", "3", cwd=tmp_path)
    assert first.returncode == 0, first.stderr[-2000:]
    assert "num_updates 3" in first.stdout + first.stderr

    resumed = spawn("train", *training, "--user-dir", USER_DIR, "--max-update", "8", cwd=tmp_path)
    log = resumed.stdout + resumed.stderr
    assert resumed.returncode == 0, log[-2000:]
    assert "Loaded checkpoint here/checkpoint_last.pt" in log
    assert "@ 3 updates" in log
    assert "num_updates 8" in log

    arguments = [data_bin, "--path", "here/checkpoint_last.pt", "--user-dir", relative, *DECODING]
    generated = spawn("generate", *arguments, cwd=tmp_path)
    assert generated.returncode == 0, generated.stderr[-2000:]
    assert generated_ids(generated.stdout) == list(range(8))

    arguments = [
        data_bin,
        "--path",
        tmp_path / "here/checkpoint_last.pt",
        "--user-dir",
        USER_DIR,
        "--cpu",
        "--beam",
        "2",
    ]
    interactive = spawn("interactive", *arguments, cwd=REPOSITORY.parent, stdin="a b c\nd e\n")
    assert interactive.returncode == 0, interactive.stderr[-2000:]
    assert sum(line.startswith("H-") for line in interactive.stdout.splitlines()) == 2


def test_owf_prints_the_user_dir(installed, tmp_path):
    """`fairseq-train ... --user-dir "$(owf --user-dir)"`, from any folder."""
    code = "import sys; from owf_fairseq.cli import main; main(['--user-dir'])"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.stdout == f"{installed / 'owf_fairseq'}\n"


def test_user_dir_beside_an_installed_package(data_bin, trained, installed, tmp_path):
    """The installed package as the user-dir, and the checkout's with another copy installed."""
    arguments = [data_bin, "--path", trained / "checkpoint_last.pt", *DECODING]
    outputs = []
    for user_dir in (installed / "owf_fairseq", USER_DIR):
        result = spawn("generate", *arguments, "--user-dir", user_dir, cwd=tmp_path, env={"PYTHONPATH": str(installed)})
        assert result.returncode == 0, result.stderr[-2000:]
        outputs.append([line for line in result.stdout.splitlines() if line.startswith("H-")])
    assert len(outputs[0]) == 8
    assert outputs[0] == outputs[1]


def test_importing_the_models_registers_silently(tmp_path, installed):
    code = (
        "import owf_fairseq.models; from fairseq.models import ARCH_MODEL_REGISTRY as archs;"
        "print('owf_big_one_wide_ffn' in archs, owf_fairseq.__file__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True,
    )  # fmt: skip
    assert result.stdout == f"True {installed / 'owf_fairseq' / '__init__.py'}\n", result.stderr
    ours = [line for line in result.stderr.splitlines() if "tensorboardX" not in line]
    assert not ours


def test_without_user_dir_fairseq_names_what_the_docs_explain(data_bin, trained, tmp_path):
    """fairseq's own commands cannot be made to say it better: the plugin that could is what is missing."""
    arguments = [data_bin, "--path", trained / "checkpoint_last.pt", *DECODING]
    result = spawn("generate", *arguments, cwd=tmp_path)
    assert result.returncode != 0
    explained = (REPOSITORY / "docs/fairseq.md").read_text(encoding="utf-8")
    assert "GLOBAL argparse.Namespace was not an allowed global" in result.stderr
    assert "GLOBAL argparse.Namespace was not an allowed global" in " ".join(explained.split())
    trained_without = spawn("train", data_bin, "--arch", "owf_tiny", *TRAINING, cwd=tmp_path)
    assert trained_without.returncode == 2
    assert "invalid choice: 'owf_tiny'" in trained_without.stderr
