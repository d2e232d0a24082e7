"""COMET's models: found or fetched, checked, and loaded.

A checkpoint is a stranger's file. COMET leaves its reading to Lightning, which leaves torch's ``weights_only`` to the
versions that happen to be installed. Here a file is read under ``weights_only`` first, and its ``hparams.yaml`` with
YAML's safe loader; COMET gets only what passed, and nothing is on torch's list of safe names for it.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.errors import InputError, collect
from owf_fairseq.files import archives
from owf_fairseq.files.json_object import is_plain_name
from owf_fairseq.scoring.comet import CometModel
from owf_fairseq.scoring.quiet import quietly, reason

COMET_LAYOUT = "a COMET model is a folder with `hparams.yaml` and `checkpoints/*.ckpt`"

HUB_OWNER = "Unbabel"
"""Whose account on the Hugging Face hub COMET's models are in."""

TOKENIZERS = ("tokenizer.json", "*.model", "vocab.*")
"""Files one of which an encoder's tokenizer needs."""


@dataclass(frozen=True)
class _Checkpoint:
    """A checkpoint that was found to be safe.

    Attributes:
        path: of the file.
        weights: their names.
        encoder: the name or the folder of the model that it is built on.
        by_hparams: whether the folder is named in `hparams.yaml`, instead of what the checkpoint itself says.
    """

    path: Path
    weights: set[str]
    encoder: str
    by_hparams: bool = False


def find_model(model: str, cpu: bool = False) -> Callable[[], CometModel]:
    """Checks a model as far as that needs no network.

    Args:
        model: the name of one that COMET can fetch, a checkpoint (``*.ckpt``) or its folder.
        cpu: use no GPU; by default one is used if there is one.

    Returns:
        What fetches the parts that are not on this machine, and loads the model; it raises an ``InputError`` if it
        can't, or if what it has fetched is not a COMET model or would run code.

    Raises:
        InputError: a file is not there, is not a COMET model or would run code, or COMET itself is missing.
    """
    problems: list[str] = []
    local = os.path.exists(model) or model.endswith(".ckpt") or model.startswith((".", "/", "~"))
    if importlib.util.find_spec("comet") is None:
        problems.append(
            "`--metrics comet` needs COMET, which is not installed: `pip install '.[comet]'` in the folder of this "
            "package, or `pip install unbabel-comet`"
        )
    path = collect(problems, lambda: _local_checkpoint(model)) if local else None
    if problems:
        raise InputError(problems)
    checked = check_comet_checkpoint(path) if path is not None else None

    def load() -> CometModel:
        checkpoint = checked or check_comet_checkpoint(_fetch(model))
        _fetch_encoder(checkpoint)
        return _load(checkpoint, checkpoint.path.parents[1].name if local else model, cpu)

    return load


def _local_checkpoint(model: str) -> Path:
    """The checkpoint that a path stands for; absolute, since Lightning takes `http...` for an address.

    Links stay: in the hub's cache a checkpoint is one, and what belongs to it is beside the link.
    """
    path = Path(os.path.abspath(Path(model).expanduser()))
    if path.is_dir():
        found = sorted(path.glob("checkpoints/*.ckpt"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise InputError(f"`--comet-model` {model} must hold one checkpoint, but has {names}: {COMET_LAYOUT}")
        path = found[0]
    elif not path.is_file():
        raise InputError(f"`--comet-model` {model} is not there: name a model or a checkpoint; {COMET_LAYOUT}")
    if not (path.parents[1] / "hparams.yaml").is_file():
        raise InputError(f"`--comet-model` {model} has no {path.parents[1] / 'hparams.yaml'}: {COMET_LAYOUT}")
    return path


def _fetch(name: str) -> Path:
    """Finds a model on this machine, without asking anybody, or lets COMET fetch it.

    COMET itself knows the models of its first years by their old names only, which the hub does not have: there they
    are in `HUB_OWNER`'s account. Their old servers are asked last.
    """
    names = [name] if "/" in name else [f"{HUB_OWNER}/{name}", name]
    found = next(filter(None, (*map(_in_hub_cache, names), _in_old_cache(name))), None)
    if found is not None:
        return found
    causes: list[object] = []
    with quietly():
        import comet

        for each in names:
            try:
                with redirect_stderr(sys.stderr if sys.stderr.isatty() else io.StringIO()):  # COMET's progress bar
                    return Path(os.path.abspath(comet.download_model(each)))
            except Exception as error:
                causes.append(_hubs_answer(error))
    raise InputError(
        f"`--comet-model` {name} is not on this machine and can't be fetched ({reason(causes[0])}): check "
        "the name and the network, or fetch it on another machine and give its checkpoint, `--comet-model "
        "MODEL/checkpoints/model.ckpt`"
    )


def _in_hub_cache(name: str) -> Path | None:
    """The checkpoint of a model that was fetched from the hub before, completely."""
    folder = _hub_snapshot(name)
    return _complete(folder) if folder is not None else None


def _in_old_cache(name: str) -> Path | None:
    """The checkpoint of a model in the folder of COMET's that its former servers filled."""
    return _complete(Path.home() / ".cache" / "torch" / "unbabel_comet" / name) if is_plain_name(name) else None


def _complete(folder: Path) -> Path | None:
    with suppress(InputError):
        return _local_checkpoint(str(folder))
    return None


def _hub_snapshot(name: str) -> Path | None:
    """The folder of what was fetched from the hub before; it need not be complete."""
    with quietly():
        import huggingface_hub

        try:
            return Path(huggingface_hub.snapshot_download(name, local_files_only=True))
        except Exception:  # many kinds, and all say that it isn't there
            return None


def _hubs_answer(error: Exception) -> object:
    """What the hub said: COMET has looked in a second place since, and tells nothing of the first."""
    second = error.__context__
    return (second.__context__ if second is not None else None) or second or error


def check_comet_checkpoint(checkpoint: Path) -> _Checkpoint:
    """Reads what is beside the weights in a way that runs nothing, and leaves the weights on the disk.

    Their check sums are compared: torch does not do it, and a model with one wrong bit would score wrongly.

    Raises:
        InputError: it is not a COMET checkpoint, or would run code.
    """
    import torch
    import yaml

    hparams_file = checkpoint.parents[1] / "hparams.yaml"
    try:
        hparams = yaml.safe_load(hparams_file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{hparams_file} was not read: it must hold plain values ({reason(error)})") from error
    if not isinstance(hparams, dict) or "class_identifier" not in hparams:
        raise InputError(f"{hparams_file} does not say which kind of COMET model it is (`class_identifier`)")
    is_zip = zipfile.is_zipfile(checkpoint)
    if is_zip and archives.is_torchscript(archives.check_archive(checkpoint, sums=True)):
        raise InputError(f"{checkpoint} {archives.TORCHSCRIPT}: name a checkpoint of COMET's; {COMET_LAYOUT}")
    try:
        with quietly():
            state = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=is_zip)
    except Exception as error:  # torch raises what it happens to stumble over
        needs = re.search(r"(?:GLOBAL|[Uu]nsupported class) ([\w.]+)", str(error))
        if needs:
            raise InputError(
                f"{checkpoint} was not read, because {needs[1]} would be called to do so, and that can run any code: "
                "get the file from where you trust it"
            ) from error
        said = reason(error)
        said = "torch can't read it safely" if "weights_only" in said else said  # its advice is to turn that off
        raise InputError(f"{checkpoint} is damaged, or no checkpoint ({said})") from error
    weights = state.get("state_dict") if isinstance(state, dict) else None
    flags = state.get("hyper_parameters") if isinstance(state, dict) else None
    if not isinstance(weights, dict) or not isinstance(flags, dict):
        raise InputError(f"{checkpoint} is not a COMET checkpoint: it lacks `state_dict` or `hyper_parameters`")
    # Lightning reads the flags from each of these, and would import and call what `_instantiator` names
    kept = [state.get(key) or () for key in ("hyper_parameters", "hparams", "module_arguments")]
    if any("_instantiator" in one for one in (*kept, hparams)):
        raise InputError(f"{checkpoint} was not read: it names a function that would make its model, `_instantiator`")
    # what users can write down: where the encoder is on a machine without a network
    folder = hparams.get("pretrained_model")
    if isinstance(folder, str) and folder != flags.get("pretrained_model") and os.path.isdir(folder):
        return _Checkpoint(checkpoint, set(weights), folder, by_hparams=True)
    return _Checkpoint(checkpoint, set(weights), str(flags.get("pretrained_model")))


def _fetch_encoder(checkpoint: _Checkpoint) -> None:
    """Fetches the tokenizer and configuration of the model that COMET's is built on, unless they are here.

    transformers would try for minutes, file by file, on a machine without a network.
    """
    if os.path.isdir(checkpoint.encoder):
        return
    here = _hub_snapshot(checkpoint.encoder)
    if here is not None and _is_encoder(here):
        return
    with quietly():
        import huggingface_hub

        try:
            # without a network it gives what is there, complete or not
            wanted = ["*.json", "*.model", "*.txt"]
            here = Path(huggingface_hub.snapshot_download(checkpoint.encoder, allow_patterns=wanted))
            if not _is_encoder(here):
                raise FileNotFoundError(f"{here} is not complete")
        except Exception as error:
            raise InputError(
                f"{checkpoint.path} needs the tokenizer of '{checkpoint.encoder}', which is not on this machine and "
                f"can't be fetched ({reason(error)}): copy the folder with its tokenizer and config.json to this "
                f"machine, and write its absolute path as `pretrained_model` in "
                f"{checkpoint.path.parents[1] / 'hparams.yaml'}"
            ) from error


def _is_encoder(folder: Path) -> bool:
    return (folder / "config.json").is_file() and any(any(folder.glob(kind)) for kind in TOKENIZERS)


def _load(checkpoint: _Checkpoint, name: str, cpu: bool) -> CometModel:
    with quietly():
        import comet
        import torch

        try:
            model = comet.load_from_checkpoint(
                str(checkpoint.path), reload_hparams=checkpoint.by_hparams, local_files_only=True
            )
        except Exception as error:
            raise InputError(f"COMET can't load {checkpoint.path}: {type(error).__name__}: {reason(error)}") from error
    # COMET loads what fits and leaves the rest as it was made, at random
    missing = [weight for weight, _ in model.named_parameters() if weight not in checkpoint.weights]
    if missing:
        raise InputError(
            f"{checkpoint.path} lacks {len(missing)} weights of its model, among them {missing[0]}: it would score at "
            "random"
        )
    return CometModel(model, name, checkpoint.path, 0 if cpu else int(torch.cuda.is_available()))
