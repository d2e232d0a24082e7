"""What works with fairseq's models works with ours, through fairseq's own commands."""

import os
import re

import pytest
import torch
from fairseq_for_tests import DECODING, TRAINING, generated_ids, run, spawn

from owf_fairseq import USER_DIR
from owf_fairseq.models import OwfTransformerModel

USER = ["--user-dir", USER_DIR]


def hypotheses(output):
    return {line.split("\t")[0]: line.split("\t")[2] for line in output.splitlines() if line.startswith("H-")}


def test_from_pretrained_translates(trained, data_bin):
    model = OwfTransformerModel.from_pretrained(str(trained), "checkpoint_last.pt", str(data_bin))
    translations = model.translate(["a b c", "d"], beam=2)
    assert len(translations) == 2
    assert all(isinstance(line, str) for line in translations)
    output = run("generate", data_bin, "--path", trained / "checkpoint_last.pt", *USER, *DECODING)
    sources = {line.split("\t")[0][2:]: line.split("\t")[1] for line in output.splitlines() if line.startswith("S-")}
    found = {f"H-{number}": model.translate(text, beam=2) for number, text in sources.items()}
    assert found == hypotheses(output)


def test_ensemble(trained, data_bin):
    paths = f"{trained / 'checkpoint_last.pt'}{os.pathsep}{trained / 'checkpoint_1_4.pt'}"
    output = run("generate", data_bin, "--path", paths, *USER, *DECODING)
    assert generated_ids(output) == list(range(8))
    alone = run("generate", data_bin, "--path", trained / "checkpoint_last.pt", *USER, *DECODING)
    scores = [re.findall(r"^H-\d+\t(\S+)", text, re.MULTILINE) for text in (output, alone)]
    assert scores[0] != scores[1]


def test_score_reference(trained, data_bin):
    output = run("generate", data_bin, "--path", trained / "checkpoint_last.pt", *USER, *DECODING, "--score-reference")
    lines = output.splitlines()
    targets = {line.split("\t")[0][2:]: line.split("\t")[1] for line in lines if line.startswith("T-")}
    scored = {line.split("\t")[0][2:]: line.split("\t")[2] for line in lines if line.startswith("H-")}
    assert len(scored) == 8
    assert scored == targets


def test_eval_bleu_while_training(data_bin, tmp_path):
    log = run(
        "train", data_bin, *USER, "--arch", "owf_tiny_shared_enc_dec", *TRAINING, "--max-update", "2",
        "--save-dir", tmp_path, "--eval-bleu", "--eval-bleu-args", '{"beam": 2}', "--best-checkpoint-metric", "bleu",
        "--maximize-best-checkpoint-metric",
    )  # fmt: skip
    assert re.search(r"valid on 'valid' subset.*\| bleu \d", log)
    assert (tmp_path / "checkpoint_best.pt").exists()


def test_finetune_from_model(trained, data_bin, tmp_path):
    log = run(
        "train", data_bin, *USER, "--arch", "owf_tiny_one_wide_ffn", *TRAINING, "--max-update", "1", "--lr", "1e-30",
        "--save-dir", tmp_path, "--finetune-from-model", trained / "checkpoint_last.pt",
    )  # fmt: skip
    assert "loading pretrained model from" in log
    before, after = (
        torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"] for folder in (trained, tmp_path)
    )
    name = "encoder.layers.0.fc1.weight"
    assert torch.equal(before[name], after[name])


@pytest.mark.parametrize(
    "flags",
    [
        ["--encoder-layerdrop", "0.2", "--decoder-layerdrop", "0.2"],
        ["--checkpoint-activations"],
        ["--encoder-normalize-before", "--decoder-normalize-before", "--activation-fn", "gelu"],
        ["--ffn-layer-norm", "per-layer", "--encoder-learned-pos", "--decoder-learned-pos"],
        ["--store-ema", "--ema-fp32"],
    ],
    ids=lambda flags: flags[0],
)
def test_fairseqs_options_train_a_shared_model(flags, data_bin, tmp_path):
    arch = "owf_tiny_cycle_2"
    log = run(
        "train", data_bin, *USER, "--arch", arch, *TRAINING, "--lr", "0.001", *flags, "--max-epoch", "4",
        "--save-dir", tmp_path,
    )  # fmt: skip
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset \| loss (\S+)", log)]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    output = run("generate", data_bin, "--path", tmp_path / "checkpoint_last.pt", *USER, *DECODING)
    assert generated_ids(output) == list(range(8))


def test_retain_dropout_modules_by_fairseqs_names(trained, data_bin):
    arguments = [data_bin, "--path", trained / "checkpoint_last.pt", *USER, *DECODING, "--retain-dropout"]
    names = "['TransformerEncoder','TransformerDecoder','TransformerEncoderLayer','TransformerDecoderLayer']"
    log = run("generate", *arguments, "--retain-dropout-modules", names)
    for stack in ("encoder", "decoder"):
        assert f"Enabling dropout during inference for module: {stack}.dropout_module" in log
        assert f"Enabling dropout during inference for module: {stack}.layers.5.dropout_module" in log
        assert f"Disabling dropout for module: {stack}.layers.5.self_attn.dropout_module" in log


HYDRA_CONFIG = """
common: {{user_dir: {user_dir}, cpu: true, log_format: simple, log_interval: 1}}
task: {{_name: translation, data: {data}, source_lang: src, target_lang: tgt}}
model: {{_name: owf_tiny_one_wide_ffn, share_all_embeddings: true, encoder_ffn: cycle-2}}
criterion: {{_name: cross_entropy}}
optimizer: {{_name: adam}}
lr_scheduler: {{_name: fixed}}
dataset: {{batch_size: 8, num_workers: 0}}
optimization: {{max_update: 2, lr: [0.001]}}
checkpoint: {{save_dir: {save_dir}}}
"""


def test_hydra_train(data_bin, tmp_path):
    """fairseq-hydra-train takes an arch by the name of the model in its config file; flags are keys beside it."""
    (tmp_path / "train.yaml").write_text(HYDRA_CONFIG.format(user_dir=USER_DIR, data=data_bin, save_dir=tmp_path))
    result = spawn("hydra-train", "--config-dir", tmp_path, "--config-name", "train", cwd=tmp_path)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    weights = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"]
    first, second, third = (weights[f"encoder.layers.{i}.fc1.weight"] for i in range(3))
    assert first.shape == (12 * 128, 64)
    assert torch.equal(first, third)
    assert not torch.equal(first, second)
    assert "decoder.layers.0.fc1.weight" not in weights
