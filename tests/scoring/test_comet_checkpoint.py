"""COMET's models that are not there, are none, or would run code: refused in a sentence before anything is scored."""

import os
import time
from pathlib import Path

import pytest
from evaluation_for_tests import evaluate, score_with_comet

pytest.importorskip("comet", reason="COMET is not installed (extra `comet`)")

import torch

pytestmark = pytest.mark.usefixtures("comet_texts")


def test_models_that_cannot_be_fetched(capsys):
    for model in ("wmt20-comet-da", "no-such-model", "nobody/no-such-model"):
        begun = time.monotonic()
        flags = ["--metrics", "bleu", "comet", "--comet-model", model, "--src", "src.en", "--ref", "ref.de"]
        printed, errors = evaluate(capsys, "base.de", *flags, status=2)
        assert time.monotonic() - begun < 15  # no endless tries; and nothing is scored first
        assert printed == ""
        (comet,) = errors.splitlines()
        assert f"`--comet-model` {model} is not on this machine and can't be fetched (" in comet
        assert "give its checkpoint, `--comet-model MODEL/checkpoints/model.ckpt`" in comet
    assert "in the `available_legacy_metrics`" not in errors


def test_nothing_is_fetched_for_texts_that_cannot_be_read(capsys, monkeypatch):
    monkeypatch.setattr("comet.download_model", lambda *_: pytest.fail("it was fetched"))
    flags = ["--metrics", "comet", "rouge", "--ref", "ref.de"]
    _, errors = evaluate(capsys, "base.de", "missing.de", *flags, "--src", "src.en", status=2)
    assert [line.split(": ", 2)[2][:12] for line in errors.splitlines()] == ["missing.de c", "`--metrics` m"[:12]]
    _, errors = evaluate(capsys, "--directions", "nowhere", *flags, status=2)
    assert "nowhere can't be read as a folder" in errors
    assert "`--metrics comet` needs `--src`" in errors


class Evil:
    """Runs code when a pickle of it is read without care."""

    def __reduce__(self):
        return Path.touch, (Path("was_run"),)


def broken(tiny_comet, folder, change):
    """A copy of the model whose checkpoint is changed, and alone says where the encoder is."""
    state = torch.load(tiny_comet, weights_only=True)
    change(state)
    (folder / "checkpoints").mkdir(parents=True)
    torch.save(state, folder / "checkpoints" / "model.ckpt")
    flags = (tiny_comet.parents[1] / "hparams.yaml").read_text().splitlines()
    kept = [line for line in flags if not line.startswith("pretrained_model:")]
    (folder / "hparams.yaml").write_text("\n".join([*kept, ""]))
    return folder


def refused(capsys, model):
    printed, errors = score_with_comet(capsys, model, "--ref", "ref.de", status=2)
    assert printed == ""
    return errors


@pytest.mark.parametrize("legacy", [False, True])
def test_a_checkpoint_that_would_run_code(legacy, tiny_comet, comet_texts, capsys, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # does not help it
    folder = broken(tiny_comet, comet_texts / "evil", lambda state: state["hyper_parameters"].update(pool=Evil()))
    if legacy:
        path = folder / "checkpoints" / "model.ckpt"
        state = {"state_dict": {}, "hyper_parameters": {"pool": Evil()}}
        torch.save(state, path, _use_new_zipfile_serialization=False)
    errors = refused(capsys, folder)
    assert "was not read, because " in errors
    assert "would be called to do so, and that can run any code: get the file from where you trust it" in errors
    assert not (comet_texts / "was_run").exists()
    assert os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] == "1"


def test_flags_that_would_run_code(tiny_comet, comet_texts, capsys):
    for key in ("hyper_parameters", "module_arguments"):
        folder = broken(
            tiny_comet,
            comet_texts / key,
            lambda state, key=key: state.setdefault(key, {}).update(_instantiator="os.system"),
        )
        assert "was not read: it names a function that would make its model, `_instantiator`" in refused(capsys, folder)
    folder = broken(tiny_comet, comet_texts / "yaml", lambda state: None)
    (folder / "hparams.yaml").write_text("class_identifier: !!python/object/apply:os.mkdir [was_run]\n")
    assert "hparams.yaml was not read: it must hold plain values (could not determine a constructor" in refused(
        capsys, folder
    )
    assert not (comet_texts / "was_run").exists()


def test_weights_that_are_missing(tiny_comet, comet_texts, capsys):
    folder = broken(tiny_comet, comet_texts / "half", lambda state: state["state_dict"].pop("estimator.ff.0.weight"))
    assert "lacks 1 weights of its model, among them estimator.ff.0.weight: it would score at random" in refused(
        capsys, folder
    )


def test_an_encoder_that_cannot_be_fetched(tiny_comet, comet_texts, capsys):
    folder = broken(
        tiny_comet,
        comet_texts / "hub",
        lambda state: state["hyper_parameters"].update(pretrained_model="nobody/no-encoder"),
    )
    begun = time.monotonic()
    errors = refused(capsys, folder)
    assert time.monotonic() - begun < 15
    assert "needs the tokenizer of 'nobody/no-encoder', which is not on this machine and can't be fetched (" in errors


def test_an_encoder_without_a_tokenizer(tiny_comet, comet_texts, capsys):
    (comet_texts / "bare").mkdir()
    folder = broken(
        tiny_comet,
        comet_texts / "model",
        lambda state: state["hyper_parameters"].update(pretrained_model=str(comet_texts / "bare")),
    )
    assert f"COMET can't load {folder / 'checkpoints' / 'model.ckpt'}: " in refused(capsys, folder)


def test_what_is_no_comet_model(tiny_comet, comet_texts, capsys):
    (comet_texts / "empty").mkdir()
    assert "`--comet-model` empty must hold one checkpoint, but has none: a COMET model is a folder with" in refused(
        capsys, "empty"
    )
    assert "`--comet-model` ./none.ckpt is not there" in refused(capsys, "./none.ckpt")
    folder = broken(tiny_comet, comet_texts / "two", lambda state: state.pop("hyper_parameters"))
    assert "is not a COMET checkpoint: it lacks `state_dict` or `hyper_parameters`" in refused(capsys, folder)
    (folder / "checkpoints" / "model.ckpt").write_bytes(b"not a checkpoint")
    assert "model.ckpt is damaged, or no checkpoint (" in refused(capsys, folder)
    (folder / "hparams.yaml").write_text("pool: avg\n")
    assert "does not say which kind of COMET model it is" in refused(capsys, folder)
    (folder / "hparams.yaml").unlink()
    assert f"has no {folder / 'hparams.yaml'}: a COMET model is a folder with" in refused(
        capsys, folder / "checkpoints" / "model.ckpt"
    )


def test_the_device(tiny_comet, monkeypatch):
    """A GPU if there is one, unless `--cpu` is given."""
    from owf_fairseq.scoring.comet_checkpoint import find_model

    for there, cpu, gpus in ((False, False, 0), (True, False, 1), (True, True, 0)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert find_model(str(tiny_comet), cpu)().gpus == gpus


def test_an_encoder_in_a_folder_that_hparams_name(tiny_comet, comet_encoder, comet_texts, capsys):
    def elsewhere(state):
        state["hyper_parameters"]["pretrained_model"] = "nobody/no-encoder"

    model = broken(tiny_comet, comet_texts / "moved", elsewhere)
    hparams = model / "hparams.yaml"
    errors = refused(capsys, model)
    assert f"write its absolute path as `pretrained_model` in {hparams}" in errors
    hparams.write_text(f"{hparams.read_text()}pretrained_model: {comet_encoder}\n")
    found = score_with_comet(capsys, model, "--ref", "ref.de")[0].splitlines()
    usual = score_with_comet(capsys, tiny_comet, "--ref", "ref.de")[0].splitlines()
    assert found[:4] == usual[:4]
    hparams.write_text(hparams.read_text() + "_instantiator: os.system\n")
    assert "names a function that would make its model" in refused(capsys, model)


def copy_model(tiny_comet, folder):
    """The tiny model in a folder of its own."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "model.ckpt").symlink_to(tiny_comet)
    (folder / "hparams.yaml").write_bytes((tiny_comet.parents[1] / "hparams.yaml").read_bytes())
    return folder / "checkpoints" / "model.ckpt"


@pytest.fixture
def hub_cache(comet_texts, monkeypatch):
    """An empty cache of the hub: makes the folder of a model in it."""
    cache = comet_texts / "hub cache"
    cache.mkdir()
    for where in ("huggingface_hub.constants.HF_HUB_CACHE", "transformers.utils.hub.TRANSFORMERS_CACHE"):
        monkeypatch.setattr(where, str(cache))

    def snapshot(name, commit="0123abcd" * 5):
        repository = cache / f"models--{name.replace('/', '--')}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text(commit)
        (repository / "snapshots" / commit).mkdir(parents=True)
        return repository / "snapshots" / commit

    return snapshot


@pytest.fixture
def asked(monkeypatch):
    """The names that COMET was asked to fetch; it can't."""
    names = []

    def download_model(name):
        names.append(name)
        raise KeyError(name)

    monkeypatch.setattr("comet.download_model", download_model)
    return names


@pytest.mark.parametrize("place", ["Unbabel/wmt20-comet-da", "wmt20-comet-da", None])
def test_models_that_were_fetched_before_need_no_network(place, hub_cache, asked, tiny_comet, comet_texts, capsys):
    """On the hub by their present name, by their former name, and where COMET itself put them before."""
    old = comet_texts / "home/.cache/torch/unbabel_comet/wmt20-comet-da"
    checkpoint = copy_model(tiny_comet, hub_cache(place) if place else old)
    printed, _ = score_with_comet(capsys, "wmt20-comet-da", "--ref", "ref.de", "--json", "scores.json")
    usual, _ = score_with_comet(capsys, tiny_comet, "--ref", "ref.de")
    assert printed.splitlines()[:4] == usual.splitlines()[:4]
    assert "model:wmt20-comet-da|" in printed
    assert str(checkpoint) in (comet_texts / "scores.json").read_text()
    assert asked == []


def test_the_hub_is_asked_by_the_present_name_first(hub_cache, asked, comet_texts, capsys):
    (hub_cache("Unbabel/wmt20-comet-da") / "hparams.yaml").touch()  # its download broke off
    for name in ("wmt20-comet-da", "somebody/some-model"):
        assert f"`--comet-model` {name} is not on this machine" in refused(capsys, name)
    assert asked == ["Unbabel/wmt20-comet-da", "wmt20-comet-da", "somebody/some-model"]


def test_a_cached_model_is_read_as_safely(hub_cache, asked, tiny_comet, capsys):
    folder = hub_cache("Unbabel/wmt20-comet-da")
    broken(tiny_comet, folder, lambda state: state["hyper_parameters"].update(pool=Evil()))
    assert "would be called to do so, and that can run any code" in refused(capsys, "wmt20-comet-da")
    assert not Path("was_run").exists()


def test_an_encoder_that_was_fetched_before_needs_no_network(hub_cache, tiny_comet, comet_encoder, comet_texts, capsys):
    def elsewhere(state):
        state["hyper_parameters"]["pretrained_model"] = "somebody/encoder"

    folder = broken(tiny_comet, comet_texts / "hub", elsewhere)
    snapshot = hub_cache("somebody/encoder")
    (snapshot / "config.json").write_bytes(Path(comet_encoder, "config.json").read_bytes())
    assert "needs the tokenizer of 'somebody/encoder'" in refused(capsys, folder)  # only its configuration is here
    for file in Path(comet_encoder).iterdir():
        (snapshot / file.name).write_bytes(file.read_bytes())
    printed, _ = score_with_comet(capsys, folder, "--ref", "ref.de")
    usual, _ = score_with_comet(capsys, tiny_comet, "--ref", "ref.de")
    assert printed.splitlines()[:4] == usual.splitlines()[:4]
