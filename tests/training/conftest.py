"""`owf train` in this process, on the toy corpus."""

import pytest

from owf_fairseq import cli

CONFIG = """
arch: owf_tiny_one_wide_ffn
encoder-layers: 1
decoder-layers: 1
encoder-ffn-embed-dim: 64
task: translation
share-all-embeddings: true
optimizer: adam
lr: 0.01
lr-scheduler: inverse_sqrt
criterion: label_smoothed_cross_entropy
dropout: 0
batch-size: 8
required-batch-size-multiple: 1
num-workers: 0
log-format: simple
log-interval: 1
disable-validation: true
no-epoch-checkpoints: true
seed: 1
cpu: true
"""


@pytest.fixture
def config(data_bin, tmp_path, monkeypatch):
    """A config in the current folder."""
    (tmp_path / "c.yaml").write_text(f"{CONFIG}data: {data_bin}\nsave-dir: model\n")
    monkeypatch.chdir(tmp_path)
    for name in ("MASTER_ADDR", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "c.yaml"


@pytest.fixture
def owf(config, capsys, caplog):
    """Runs `owf train c.yaml`; returns the status, what was printed on both streams, and fairseq's log."""

    def run(*words):
        caplog.clear()
        with caplog.at_level("INFO"):
            status = cli.main(["train", "c.yaml", *map(str, words)])
        out, err = capsys.readouterr()
        return status, out, err, "\n".join(record.getMessage() for record in caplog.records)

    return run
