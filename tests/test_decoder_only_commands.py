"""The decoder-only model through fairseq's ordinary commands and all of our tools, with the plain translation task."""

import json
import math

import pytest
import torch
from fairseq_for_tests import DECODING, generated_ids, run, spawn, text_sentences, train_on_text

from owf_fairseq import USER_DIR, cli

FLAGS = "--decoder-layers 2 --decoder-embed-dim 96 --decoder-attention-heads 4 --decoder-normalize-before"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small decoder-only model that copies the sentences of a toy language."""
    folder = tmp_path_factory.mktemp("decoder_only")
    return train_on_text(folder, f"--arch owf_decoder_only_tiny_one_wide_ffn {FLAGS}")


def test_it_learns_and_translates_line_by_line(trained, tmp_path, capsys):
    lines = text_sentences(20, seed=5)
    (tmp_path / "source").write_text("\n".join([*lines, ""]) + "\n")
    out = tmp_path / "out"
    assert (
        cli.main(["translate", str(trained), "--input", str(tmp_path / "source"), "--output", str(out), "--cpu"]) == 0
    )
    translated = out.read_text().split("\n")
    assert len(translated) == 22
    assert sum(one == other for one, other in zip(lines, translated, strict=False)) >= 18
    files = [f"toy={out}", "--ref", str(tmp_path / "source"), "--json", str(tmp_path / "scores.json")]
    assert cli.main(["evaluate", *files]) == 0
    assert json.loads((tmp_path / "scores.json").read_text())["systems"][0]["scores"]["bleu"]["score"] > 80


def test_fairseq_generate_and_interactive_say_what_owf_translate_says(trained, tmp_path, capsys):
    data = trained.parent.parent / "data"
    flags = ["--user-dir", USER_DIR, "--path", trained, "--remove-bpe", "sentencepiece", *DECODING]
    flags += ["--max-len-a", "2", "--max-len-b", "10"]
    output = run("generate", data, *flags)
    assert generated_ids(output) == list(range(20))
    theirs = {
        int(line.split("\t")[0][2:]): line.split("\t")[1:] for line in output.splitlines() if line.startswith("H-")
    }
    capsys.readouterr()
    source = trained.parent.parent / "test.en"
    assert cli.main(["translate", str(trained), "--input", str(source), "--beam", "2", "--scores", "--cpu"]) == 0
    for line in capsys.readouterr().out.splitlines():
        number, score, text = line.split("\t")
        assert theirs[int(number) - 1][1] == text
        assert float(theirs[int(number) - 1][0]) * math.log(2) == pytest.approx(float(score), abs=2e-3)
    pieces = (data / "encoded/test.en").read_text().splitlines()[:3]
    interactive = run(
        "interactive", data, *flags, "-s", "en", "-t", "de", "--buffer-size", "3", stdin="\n".join(pieces)
    )
    assert generated_ids(interactive) == [0, 1, 2]


def test_scoring_and_attention_weights(trained):
    data = trained.parent.parent / "data"
    flags = ["--user-dir", USER_DIR, "--path", trained, *DECODING]
    scored = run("generate", data, *flags, "--score-reference")
    assert generated_ids(scored) == list(range(20))
    aligned = run("generate", data, *flags, "--print-alignment")
    assert sum(line.startswith("A-") for line in aligned.splitlines()) == 20


def test_all_tools_take_it(trained, tmp_path, capsys):
    def said(*command, status=0):
        capsys.readouterr()
        assert cli.main([*map(str, command)]) == status
        captured = capsys.readouterr()
        return captured.out + captured.err

    inspected = said("inspect", trained)
    assert "owf_decoder_only_tiny_one_wide_ffn (One Wide FFN)" in inspected
    assert "2 layers" in inspected
    assert "cross" not in inspected
    assert "encoder" not in inspected
    average, individual, shared = (tmp_path / name for name in ("average.pt", "individual.pt", "shared.pt"))
    said("average", trained, "--output", average)
    said("convert", average, "--to", "individual", "--output", individual)
    source = trained.parent.parent / "test.en"
    data = ("--data", trained.parent.parent / "data")
    texts = [said("translate", path, "--input", source, "--cpu", *data) for path in (trained, average, individual)]
    assert texts[0] == texts[1] == texts[2]
    small = ["--decoder-layers", "2", "--decoder-embed-dim", "96", "--decoder-attention-heads", "4"]
    width = ["--decoder-ffn-embed-dim", "512"]
    said("convert", individual, "--to", "owf_decoder_only_tiny_shared_dec", *small, *width, "--output", shared)
    assert "is of a decoder-only model" in said("convert", trained, "--to", "fairseq", "--output", "x.pt", status=2)
    refused = said("convert", trained, "--to", "owf_tiny", "--output", tmp_path / "x.pt", status=2)
    assert "one of them is decoder-only" in refused
    advice = said("convert", trained, "--to", "owf_decoder_only_shared_dec", "--output", tmp_path / "x.pt", status=2)
    assert "give `--decoder-embed-dim 96`" in advice
    assert "--encoder" not in advice
    for command in ("params", "benchmark"):
        refused = said(command, "owf_decoder_only_tiny", "--encoder-layers", "3", status=2)
        assert refused.count("\n") == 1
        assert "`--encoder-layers` is not for a decoder-only model" in refused
    assert "has one matrix" in said("params", "owf_decoder_only", "--separate-embeddings", status=2)
    speed = tmp_path / "speed.json"
    archs = ["owf_tiny", "owf_decoder_only_tiny", "owf_decoder_only_tiny_no_dec"]
    what = ["--lengths", "4/5", "--sentences", "2", "--runs", "1", "--vocab-size", "99", "--cpu", "--json", speed]
    assert "owf_decoder_only_tiny_no_dec" in said("benchmark", *archs, *what)
    assert "owf_decoder_only" in said("benchmark", "--predict", "owf_big", "owf_decoder_only")
    table = said("report", speed, "--table", "other")
    assert "Transformer Decoder-Only, decoder_only en-de" in table
    assert "202,772,480" in said("params", "owf_decoder_only")
    assert "12 layers, d 1024" in said("params", "--list")


def test_parameters_are_those_of_the_papers_rows(capsys):
    assert cli.main(["params", "--paper", "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row["arch"].startswith("owf_decoder_only")]
    assert [row["total"] for row in rows] == [202_772_480, 110_418_944, 202_738_688]
    for row in rows:
        assert abs(row["total"] / 1e6 - row["paper_millions"]) < 1


def test_the_config_system_trains_it_and_refuses_flags_of_an_encoder(data_bin, tmp_path):
    config = """
common: {user_dir: %s, cpu: true, seed: 1}
task: {_name: translation, data: %s, source_lang: src, target_lang: tgt}
model: {_name: owf_decoder_only_tiny%s}
criterion: {_name: cross_entropy}
optimizer: {_name: adam}
lr_scheduler: {_name: fixed}
optimization: {max_epoch: 1, lr: [0.001]}
dataset: {batch_size: 16, required_batch_size_multiple: 1, num_workers: 0}
checkpoint: {save_dir: %s}
"""
    for more, status in (("", 0), (", encoder_embed_dim: 32", 1)):
        (tmp_path / "train.yaml").write_text(config % (USER_DIR, data_bin, more, tmp_path / "saved"))
        done = spawn("hydra-train", "--config-dir", tmp_path, "--config-name", "train", cwd=tmp_path)
        assert bool(done.returncode) == bool(status), done.stderr[-2000:]
    assert "`--encoder-embed-dim` is not for a decoder-only model" in done.stderr
    assert (tmp_path / "saved/checkpoint_last.pt").exists()


def test_fine_tuning_goes_on_from_the_stored_weights(trained, tmp_path):
    data = trained.parent.parent / "data"
    flags = "--task translation --arch owf_decoder_only_tiny_one_wide_ffn --optimizer adam --lr 0.001 --cpu"
    flags += f" --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 200 --num-workers 0 {FLAGS}"
    flags += " --required-batch-size-multiple 1 --no-progress-bar --max-epoch 1 --finetune-from-model"
    run("train", data, "--user-dir", USER_DIR, *flags.split(), trained, "--save-dir", tmp_path)
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    assert not [name for name in state["model"] if name.startswith("encoder.")]
    assert state["extra_state"]["val_loss"] < 1.5
