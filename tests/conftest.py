"""Lets test modules in every folder import the helpers that lie beside this file."""

import functools
import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

# the models of the tests are so small that a second thread costs more than it saves, most of all on a busy machine
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes that tests start


@pytest.fixture(scope="session")
def data_bin(tmp_path_factory):
    """Binary data of a toy corpus, 64 training pairs."""
    from fairseq_for_tests import write_data

    return write_data(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def trained(data_bin, tmp_path_factory):
    """The folder of a One Wide FFN model after one epoch on the toy corpus, with two checkpoints."""
    from fairseq_for_tests import TRAINING, run

    from owf_fairseq import USER_DIR

    folder = tmp_path_factory.mktemp("trained")
    run(
        "train", data_bin, "--user-dir", USER_DIR, "--arch", "owf_tiny_one_wide_ffn", *TRAINING,
        "--max-epoch", "1", "--save-interval-updates", "4", "--save-dir", folder,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def copier(tmp_path_factory):
    """The checkpoint of a small model that copies the sentences of a toy language, prepared with SentencePiece."""
    from fairseq_for_tests import train_on_text

    return train_on_text(tmp_path_factory.mktemp("copier"))


@pytest.fixture(scope="session")
def copier_with(tmp_path_factory):
    """The checkpoint of such a model with another segmentation, trained when it is first asked for."""
    from fairseq_for_tests import train_on_text

    return functools.cache(lambda kind: train_on_text(tmp_path_factory.mktemp(kind), segmentation=kind))


@pytest.fixture(scope="session")
def exported_copier(copier, tmp_path_factory):
    """What `owf export` makes of that checkpoint."""
    from owf_fairseq.export.export import export

    folder = tmp_path_factory.mktemp("exported") / "ctranslate2"
    export(str(copier), folder)
    return folder
