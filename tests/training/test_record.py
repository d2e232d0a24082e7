"""Which trainings may go on from the checkpoints of a folder."""

import pytest

from owf_fairseq.training.record import HEADER, TRAINING_RECORD, check_record, make_record, write_record


def record(**flags):
    given = {"data": ("d",), "lr": ("0.1",)} | {name.replace("_", "-"): value for name, value in flags.items()}
    return make_record("row.yaml", given, 32, 1, "cpu")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a checkpoint and its record."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoint_last.pt").touch()
    write_record(tmp_path, record(data=("d:shards/1",), ddp_backend=("legacy_ddp",), eval_bleu=()))
    return tmp_path


def test_where_nothing_that_is_learnt_changes_it_goes_on(folder):
    changed = record(
        data=(f"{folder}/d:shards/../shards/1",),
        ddp_backend=("pytorch_ddp",),
        batch_size_valid=("4",),
        max_tokens_valid=("100",),
        max_valid_steps=("2",),
        eval_bleu_args=('{"beam": 5}',),
        eval_bleu_remove_bpe=(),
        load_checkpoint_on_all_dp_ranks=(),
    )
    assert check_record(folder, changed) == []


def test_other_data_are_another_training(folder):
    (problem,) = check_record(folder, record(data=("d:shards/2",)))
    assert f"settings: data {folder}/d:{folder}/shards/2 (before: {folder}/d:{folder}/shards/1). Give" in problem


def test_the_file_says_what_was_given(folder):
    text = (folder / TRAINING_RECORD).read_text()
    assert text.startswith(f"{HEADER}\n")
    assert "  data: d:shards/1\n" in text
    assert "  eval-bleu: true\n" in text
