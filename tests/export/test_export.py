"""`owf export`: what the folder holds, that it serves, what is refused, and that nothing is left after a failure."""

import contextlib
import io
import json
import os
import re
import shutil
from math import nan

import pytest
import torch
from models_for_tests import checkpoint_of, make_model, parse

from owf_fairseq import cli
from owf_fairseq.decoding.exported import QUANTIZATIONS, ExportedModel
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.export import export as exporting
from owf_fairseq.export import verification
from owf_fairseq.export.ctranslate2_spec import ModelConverter
from owf_fairseq.export.inexpressible import ACTIVATIONS

A = "the lamp opens the door."


def export(*arguments):
    """Status, and what was printed and said."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["export", *map(str, arguments)])
    return status, out.getvalue(), err.getvalue()


def run_example(folder):
    """Runs the Python of the folder's README where the folder is now, and gives what it printed."""
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert len(code.strip().splitlines()) == 5
    out, before = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code.replace("Put a sentence here.", A), "README.md", "exec"), {})
    finally:
        os.chdir(before)
    return out.getvalue().strip()


def test_the_folder_holds_what_serving_needs(copier, exported_copier):
    names = {name for name in os.listdir(exported_copier) if not name.startswith(".")}
    assert names == {
        *("model.bin", "config.json", "shared_vocabulary.json", "segmentation.json", "sentencepiece.model"),
        *("README.md", "training_flags.json", "export.json"),
    }
    flags = json.loads((exported_copier / "training_flags.json").read_text())
    assert (flags["model"]["arch"], flags["optimization"]["max_update"]) == ("owf_tiny_one_wide_ffn", 450)
    model = ExportedModel.read(exported_copier)
    assert (model.record["source"], model.record["target"]) == ("en", "de")
    assert model.model().plan.shares is False
    assert model.record["verification"]["largest"] < 1e-4
    assert model.record["verification"]["sentences"] == 8  # the validation data has no more
    assert run_example(exported_copier) == A


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_every_precision_is_verified_and_translates(copier, tmp_path, quantization, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = export(copier, "--to", "ctranslate2", "--output", tmp_path / "x", "--quantization", quantization)
    assert (status, err) == (0, "")
    largest, mean = map(float, re.search(r"log-probability ([\d.e-]+), mean ([\d.e-]+)", out).groups())
    found = ExportedModel.read(tmp_path / "x").record["verification"]
    assert (largest, mean) == pytest.approx((found["largest"], found["mean"]), rel=0.1)
    assert 0 <= mean <= largest <= max(verification.THRESHOLDS[quantization], 1e-4)
    assert largest > 1e-5 or not quantization.startswith("int8")
    assert f" {(tmp_path / 'x/model.bin').stat().st_size:,} bytes" in out
    assert run_example(tmp_path / "x") == A
    (tmp_path / "text").write_text(f"{A}\n")
    assert cli.main(["translate", str(tmp_path / "x"), "--input", str(tmp_path / "text"), "--output", "y"]) == 0
    assert (tmp_path / "y").read_text() == f"{A}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".y.owf.json", "text", "x", "y"]


def test_the_list_of_precisions_is_ctranslate2s():
    from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES

    assert set(ACCEPTED_MODEL_TYPES) - set(QUANTIZATIONS) == {"int16"}
    assert set(verification.THRESHOLDS) == set(QUANTIZATIONS)


@pytest.mark.parametrize("segmentation", ["separate-sentencepiece", "moses-bpe", "none"])
def test_other_segmentations(copier_with, tmp_path, segmentation):
    assert export(copier_with(segmentation), "--output", tmp_path / "exported")[0] == 0
    if segmentation != "none":
        assert run_example(tmp_path / "exported") == A
    else:
        assert run_example(tmp_path / "exported")
    (tmp_path / "text").write_text(f"{A}\n\n{A}\n")
    arguments = ["--input", str(tmp_path / "text"), "--output", str(tmp_path / "translated")]
    assert cli.main(["translate", "--backend", "ctranslate2", str(tmp_path / "exported"), *arguments]) == 0
    assert (tmp_path / "translated").read_text() == f"{A}\n\n{A}\n"


def test_sentences_to_verify_on_can_be_named(copier, tmp_path):
    (tmp_path / "text").write_text(f"{A}\n\n{A} {A}\nfan\n")
    status, out, _ = export(copier, "--output", tmp_path / "x", "--verify", tmp_path / "text")
    assert status == 0
    assert "of 3 sentences" in out
    (tmp_path / "text").write_text("\n \n")
    status, _, err = export(copier, "--output", tmp_path / "y", "--verify", tmp_path / "text")
    assert (status, "has no sentence" in err) == (2, True)
    (tmp_path / "text").write_text(f"{A} " * 400 + "\n")
    status, _, err = export(copier, "--output", tmp_path / "y", "--verify", tmp_path / "text")
    assert (status, "more pieces than the model takes" in err) == (2, True)
    assert not (tmp_path / "y").exists()


def test_a_wrong_model_is_not_left_behind(copier, tmp_path, monkeypatch):
    load = ModelConverter._load

    def wrong(self):
        spec = load(self)
        spec.decoder.layer[0].self_attention.layer_norm.gamma *= 0.9
        return spec

    monkeypatch.setattr(ModelConverter, "_load", wrong)
    for quantization in QUANTIZATIONS:  # a coarse one can't hide the mistake: the structure is verified in float32
        status, out, err = export(copier, "--output", tmp_path / "x", "--quantization", quantization)
        assert (status, out) == (2, "")
        assert "does not compute what the checkpoint does: largest difference" in err
        assert os.listdir(tmp_path) == []
    assert verification.Verification(1, 1, nan, nan, 0.0, nan, nan, 1.0, 1.0, "float32").passed is False


def test_weights_that_are_quantised_wrongly_are_not_left_behind(copier, tmp_path, monkeypatch):
    load = ModelConverter._load

    def wrong(self):
        spec = load(self)
        if self.half_positions:  # that is, in int8
            spec.decoder.layer_norm.gamma *= 0.1
        return spec

    monkeypatch.setattr(ModelConverter, "_load", wrong)
    status, _, err = export(copier, "--output", tmp_path / "x", "--quantization", "int8")
    assert (status, "does not compute what the checkpoint does" in err) == (2, True)
    assert os.listdir(tmp_path) == []


def test_positions_of_int8_are_stored_in_half_precision_where_they_are_large(tmp_path):
    dims = "--encoder-embed-dim 512 --decoder-embed-dim 512 --encoder-layers 1 --decoder-layers 1".split()
    sizes = {}
    for quantization in ("int8", "float16"):
        made = FairseqBackend.from_arch("owf_tiny", 100, dims, cpu=True, packed=False)
        folder = tmp_path / quantization
        folder.mkdir()
        flags = {"model": {"arch": "owf_tiny"}}
        exporting.write_model(made.models[0], (made.source, made.target), folder, quantization, flags, ("a", "b"))
        sizes[quantization] = (folder / "model.bin").stat().st_size
    # matrices of one byte and of two; positions, a fifth of what there is, of two in both
    positions = 2 * 1024 * 512
    assert sizes["int8"] - positions == pytest.approx((sizes["float16"] - positions) / 2, rel=0.1)


DAMAGES = {
    "weights": ("model.bin", b"\x06\x00"),
    "no weights": ("model.bin", None),
    "vocabulary": ("shared_vocabulary.json", b"["),
    "no vocabulary": ("shared_vocabulary.json", None),
    "configuration": ("config.json", b"{"),
    "no configuration": ("config.json", None),
    "record": ("export.json", b'{"kind": "export", "max_source_length": "abc"}'),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_folder(exported_copier, tmp_path, capsys, what):
    shutil.copytree(exported_copier, tmp_path / "damaged")
    name, content = DAMAGES[what]
    (tmp_path / "damaged" / name).unlink()
    if content is not None:
        (tmp_path / "damaged" / name).write_bytes(content)
    (tmp_path / "text").write_text(f"{A}\n")
    assert cli.main(["translate", str(tmp_path / "damaged"), "--input", str(tmp_path / "text"), "--cpu"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert str(tmp_path / "damaged") in err
    assert "export the checkpoint again" in err


def test_data_without_sentences_that_can_be_read(copier, tmp_path):
    shutil.copytree(copier.parent.parent / "data", tmp_path / "data")
    for split in ("valid", "test", "train"):
        (tmp_path / f"data/{split}.en-de.en.bin").unlink()
    status, _, err = export(copier, "--data", tmp_path / "data", "--output", tmp_path / "x")
    assert (status, "has no sentences to verify the model on" in err) == (2, True)
    (tmp_path / "data/valid.en-de.en.bin").write_bytes(b"")
    (tmp_path / "data/valid.en-de.en.idx").write_bytes(b"damaged")
    status, _, err = export(copier, "--data", tmp_path / "data", "--output", tmp_path / "x")
    assert status == 2
    assert "valid.en-de.en.idx is damaged" in err


def test_a_record_does_not_lead_out_of_the_folder(copier, tmp_path):
    record = json.loads((copier.parent.parent / "data/segmentation.json").read_text())
    shutil.copy(copier.parent.parent / "data/sentencepiece.model", tmp_path / "outside.model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/segmentation.json").write_text(json.dumps({**record, "model": "../outside.model"}))
    status, _, errors = export(copier, "--segmentation", tmp_path / "other", "--output", tmp_path / "in/exported")
    assert status == 2
    assert "'../outside.model'" in errors
    assert not (tmp_path / "in").exists()


@pytest.fixture
def stored(tmp_path, data_bin):
    """Writes a checkpoint of a random model whose data are there."""

    def store(arch, *flags):
        args = parse(arch, "--share-all-embeddings", *flags)
        state = checkpoint_of(make_model(arch, "--share-all-embeddings", *flags), args)
        state["cfg"]["task"] = {"data": str(data_bin), "source_lang": "src", "target_lang": "tgt"}
        torch.save(state, tmp_path / "model.pt")
        return tmp_path / "model.pt"

    return store


REFUSED = {
    "decoder-only": ("owf_decoder_only_tiny", (), ["`--arch owf_decoder_only_tiny` is decoder-only"]),
    "norms and activation": (
        "owf_tiny_no_dec",
        ("--encoder-normalize-before", "--activation-fn", "linear", "--decoder-attention-heads", "4"),
        [
            "`--encoder-normalize-before` and `--decoder-normalize-before` must be the same",
            "`--encoder-attention-heads` and `--decoder-attention-heads` must be the same",
            "`--activation-fn` must be one of relu, gelu, ",
        ],
    ),
    "what is missing": (
        "owf_tiny",
        ("--no-token-positional-embeddings", "--no-cross-attention"),
        ["`--no-token-positional-embeddings`", "`--no-cross-attention`"],
    ),
    "softmax": ("owf_tiny", ("--adaptive-softmax-cutoff", "10,20"), ["`--adaptive-softmax-cutoff`"]),
    "last norm": (
        "owf_tiny",
        "--encoder-normalize-before --decoder-normalize-before --no-decoder-final-norm".split(),
        ["`--no-decoder-final-norm` can't be exported"],
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_expressed_is_refused_all_at_once(stored, tmp_path, what):
    arch, flags, expected = REFUSED[what]
    if what in ("softmax", "last norm"):  # a checkpoint may say so, but none of our models is built with it
        args = parse(arch, *flags)
        args.share_all_embeddings = False
        problems = exporting_problems(args)
    else:
        checkpoint = stored(arch, *flags)
        before = sorted(os.listdir(tmp_path))
        status, out, err = export(
            checkpoint, "--output", tmp_path / "x", "--quantization", "int4", "--segmentation", "none"
        )
        assert (status, out) == (2, "")
        assert "`--quantization` must be one of float32, " in err
        assert sorted(os.listdir(tmp_path)) == before
        problems = err
    for part in expected:
        assert part in problems


def exporting_problems(args):
    """What is said of flags alone."""
    from owf_fairseq.export.inexpressible import inexpressible

    return "\n".join(inexpressible(args))


def test_widths_that_cannot_be_expressed():
    args = parse("owf_tiny")
    args.decoder_input_dim, args.decoder_output_dim = 32, 16
    for flag in ("`--decoder-input-dim` must be", "`--decoder-output-dim` must be"):
        assert flag in exporting_problems(args)


def test_fairseqs_own_transformer(copier, tmp_path):
    plain = tmp_path / "plain.pt"
    assert cli.main(["convert", str(copier), "--to", "fairseq", "--output", str(plain)]) == 0
    data = copier.parent.parent / "data"
    status, out, err = export(plain, "--data", data, "--output", tmp_path / "x")
    assert (status, err) == (0, "")
    assert "verified: largest difference" in out
    assert ExportedModel.read(tmp_path / "x").model().is_ours is False
    assert run_example(tmp_path / "x") == A


def test_activations_are_those_of_both():
    from ctranslate2.specs.common_spec import Activation

    assert all(name in Activation.__members__ for name in ACTIVATIONS.values())


def test_ensembles_folders_and_files_that_are_there(copier, exported_copier, tmp_path):
    status, _, err = export(f"{copier}:{copier}", "--output", tmp_path / "x")
    assert (status, "CTranslate2 has no ensembles" in err) == (2, True)
    status, _, err = export(exported_copier, "--output", tmp_path / "x")
    assert (status, "is a folder" in err) == (2, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/note.txt").write_text("mine")
    status, _, err = export(copier, "--output", tmp_path / "mine")
    assert (status, "holds files that `owf export` didn't make" in err) == (2, True)
    assert os.listdir(tmp_path / "mine") == ["note.txt"]
    # what it made itself is replaced
    for quantization in ("float32", "int8"):
        assert export(copier, "--output", tmp_path / "ours", "--quantization", quantization)[0] == 0
    assert ExportedModel.read(tmp_path / "ours").record["quantization"] == "int8"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--backend", "ctranslate2"), "needs a folder that `owf export` made"),
        (("--backend", "fairseq"), None),
    ],
)
def test_the_backend_of_a_checkpoint(copier, capsys, flags, message):
    status = cli.main(["translate", str(copier), "--cpu", "--input", os.devnull, *flags])
    assert status == (0 if message is None else 2)
    assert (message or "") in capsys.readouterr().err


def test_flags_that_do_not_go_with_an_exported_model(exported_copier, tmp_path, capsys):
    arguments = ["--input", os.devnull, "--data", str(tmp_path), "--fp16"]
    assert cli.main(["translate", str(exported_copier), *arguments]) == 2
    err = capsys.readouterr().err
    assert "`--data` is for checkpoints" in err
    assert "`--fp16` is for checkpoints" in err
    assert cli.main(["translate", "--backend", "fairseq", str(exported_copier), "--input", os.devnull]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert cli.main(["translate", str(tmp_path), "--input", os.devnull]) == 2
    assert "is not a folder that `owf export` made" in capsys.readouterr().err
