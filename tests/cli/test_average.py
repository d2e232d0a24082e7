"""`owf average` on checkpoints that fairseq-train wrote, and fairseq-generate with the result."""

import pytest
import torch
from fairseq_for_tests import DECODING, TRAINING, generated_ids, run

from owf_fairseq import USER_DIR, cli
from owf_fairseq.checkpoints.checkpoint import read_checkpoint

USER = ["--user-dir", USER_DIR]


@pytest.fixture(scope="module")
def folder(data_bin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    arguments = [
        data_bin,
        *USER,
        "--arch",
        "owf_tiny_one_wide_ffn",
        *TRAINING,
        "--max-epoch",
        "3",
        "--save-dir",
        folder,
    ]
    run("train", *arguments)
    return folder


def test_last_and_the_result_translates(folder, data_bin, tmp_path, capsys):
    output = tmp_path / "averaged.pt"
    assert cli.main(["average", str(folder), "--last", "2", "--output", str(output)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{folder / 'checkpoint3.pt'}: 24 updates"
    assert printed[1] == f"{folder / 'checkpoint2.pt'}: 16 updates"
    assert printed[2] == f"mean of 2 checkpoints, without optimizer state -> {output}"
    name = "encoder.layers.0.fc1.weight"
    weights = [read_checkpoint(folder / f"checkpoint{epoch}.pt")["model"][name].double() for epoch in (2, 3)]
    assert torch.equal(read_checkpoint(output)["model"][name], (sum(weights) / 2).float())
    assert output.stat().st_size < 0.4 * (folder / "checkpoint3.pt").stat().st_size
    translated = run("generate", data_bin, "--path", output, *USER, *DECODING)
    assert generated_ids(translated) == list(range(8))


def test_best_and_explicit(folder, tmp_path, capsys):
    scores = {n: read_checkpoint(folder / f"checkpoint{n}.pt")["extra_state"]["val_loss"] for n in (1, 2, 3)}
    expected = sorted(scores, key=scores.__getitem__)[:2]
    chosen, explicit = tmp_path / "best.pt", tmp_path / "explicit.pt"
    assert cli.main(["average", str(folder), "--best", "2", "--output", str(chosen)]) == 0
    assert f"checkpoint{expected[0]}.pt" in capsys.readouterr().out.splitlines()[0]
    files = [str(folder / f"checkpoint{n}.pt") for n in expected]
    assert cli.main(["average", *files, "--output", str(explicit)]) == 0
    one, two = (read_checkpoint(path)["model"] for path in (chosen, explicit))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_training_goes_on_from_it_afresh(folder, data_bin, tmp_path):
    output = tmp_path / "averaged.pt"
    assert cli.main(["average", str(folder), "--last", "2", "--output", str(output)]) == 0
    log = run(
        "train", data_bin, *USER, "--arch", "owf_tiny_one_wide_ffn", *TRAINING, "--max-update", "2",
        "--save-dir", tmp_path / "more", "--finetune-from-model", output,
    )  # fmt: skip
    assert "num_updates=1," in log


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["{folder}", "--last", "9"], "`--last` is 9, but"),
        (["{folder}"], "is a folder: choose among its checkpoints"),
        (["{folder}", "{folder}", "--last", "1"], "choose in one folder, but 2 names are given"),
        (["{folder}/none.pt"], "none.pt can't be read"),
    ],
)
def test_bad_input_is_status_2_and_nothing_is_written(arguments, problem, folder, tmp_path, capsys):
    arguments = [argument.format(folder=folder) for argument in arguments]
    output = tmp_path / "averaged.pt"
    assert cli.main(["average", *arguments, "--output", str(output)]) == 2
    assert problem in capsys.readouterr().err
    assert not output.exists()


def test_a_checkpoint_of_the_training_is_not_overwritten(folder, capsys):
    target = folder / "checkpoint_last.pt"
    before = target.read_bytes()
    assert cli.main(["average", str(folder), "--last", "9", "--output", str(target)]) == 2
    problems = capsys.readouterr().err.splitlines()
    assert any("exists, and `owf average` did not make it" in problem for problem in problems)
    assert any("`--last` is 9" in problem for problem in problems)
    assert target.read_bytes() == before
