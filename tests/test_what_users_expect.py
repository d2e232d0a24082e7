"""What works with fairseq's models works with ours, through fairseq's own commands."""

import os
import pickle
import re
from types import SimpleNamespace

import pytest
import torch
from fairseq.models.ema.ema import EMA
from fairseq_for_tests import DECODING, TRAINING, generated_ids, run, spawn
from models_for_tests import make_model

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
    # the checkpoint now holds counts in numpy arrays: it must be read all the same
    resumed = run(
        "train", data_bin, *USER, "--arch", "owf_tiny_shared_enc_dec", *TRAINING, "--max-update", "3",
        "--save-dir", tmp_path,
    )  # fmt: skip
    assert "Loaded checkpoint" in resumed
    assert "num_updates 3" in resumed
    output = run("generate", data_bin, "--path", tmp_path / "checkpoint_best.pt", *USER, *DECODING)
    assert generated_ids(output) == list(range(8))


class RunsCode:
    def __reduce__(self):
        return os.mkdir, ("made-by-the-checkpoint",)


def test_a_checkpoint_that_would_run_code_is_still_refused(trained, data_bin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = torch.load(trained / "checkpoint_last.pt", weights_only=True)
    torch.save({**state, "extra_state": RunsCode()}, "bad.pt")
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        run("generate", data_bin, "--path", "bad.pt", *USER, *DECODING)
    assert not (tmp_path / "made-by-the-checkpoint").exists()


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


@pytest.mark.parametrize("arch", ["owf_tiny", "owf_tiny_shared_enc_dec", "owf_tiny_attention_sss"])
@pytest.mark.parametrize("fp32", [False, True])
def test_moving_average_moves_a_shared_weight_once_an_update(arch, fp32):
    """fairseq goes through the state dict: it would move a weight once for each of its names."""
    model = make_model(arch)
    config = SimpleNamespace(ema_decay=0.9, ema_fp32=fp32, ema_seed_model=None, ema_start_update=0, ema_update_freq=1)
    average = EMA(model, config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1
    before = [parameter.clone() for parameter in average.get_model().parameters()]
    average.step(model, updates=1)
    after = list(average.get_model().parameters())
    assert len(after) == len(before) > 10
    assert all(
        torch.allclose(new - old, torch.full_like(old, 0.1), atol=1e-5) for new, old in zip(after, before, strict=True)
    )


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
    first, second = (weights[f"encoder.layers.{i}.fc1.weight"] for i in range(2))
    assert first.shape == second.shape == (12 * 128, 64)
    assert not torch.equal(first, second)
    assert "encoder.layers.2.fc1.weight" not in weights  # the first layer's, stored once
    assert "decoder.layers.0.fc1.weight" not in weights
    output = run("generate", data_bin, "--path", tmp_path / "checkpoint_last.pt", *USER, *DECODING)
    assert generated_ids(output) == list(range(8))


def test_hydra_train_refuses_a_misspelt_key_and_takes_null_as_not_given(data_bin, tmp_path):
    text = HYDRA_CONFIG.format(user_dir=USER_DIR, data=data_bin, save_dir=tmp_path)
    (tmp_path / "train.yaml").write_text(
        text.replace("encoder_ffn: cycle-2", "encoder_fnn: cycle-2, decoder_ffn: null")
    )
    result = spawn("hydra-train", "--config-dir", tmp_path, "--config-name", "train", cwd=tmp_path)
    assert result.returncode != 0
    assert "`encoder_fnn` under `model` is not a flag of the model; did you mean `encoder_ffn`?" in result.stderr
    assert not (tmp_path / "checkpoint_last.pt").exists()
