"""The only file that knows which fairseq and which torch is installed.

The plugin runs on the official fairseq 0.12.2 (Python 3.10) and on two published builds of its main branch (Python 3.11
and 3.12), which differ in a few places that all meet here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from fairseq.models.transformer import TransformerConfig
from omegaconf import DictConfig, OmegaConf


class EncoderLayerCompat(torch.nn.Module):
    """What fairseq 0.12.2's encoder reads from its layers.

    Its stock layer keeps a second copy of the weights for a fused kernel that it takes in eval mode. That kernel knows
    nothing of shared or dropped FFNs: our layers answer that they have no such copy, and the encoder calls ``forward``.
    """

    load_to_BT = False


def allow_fairseq_checkpoints() -> None:
    """Lets torch >= 2.6 read the checkpoints that fairseq writes, without turning its safety off.

    ``torch.load`` then refuses every class that is not on its list; a checkpoint of fairseq-train holds its flags in a
    Namespace. A pickle that would run code is still refused.
    """
    add_safe_globals = getattr(torch.serialization, "add_safe_globals", None)
    if add_safe_globals is not None:
        add_safe_globals([argparse.Namespace])


def as_namespace(args: Any) -> argparse.Namespace | TransformerConfig:
    """A model's flags in a form that fairseq's TransformerConfig can read; fairseq-hydra-train gives a DictConfig."""
    if isinstance(args, DictConfig):
        return argparse.Namespace(**{str(k): v for k, v in OmegaConf.to_container(args, resolve=True).items()})
    return args


def for_any_config(set_flags: Callable[[argparse.Namespace], None]) -> Callable[[Any], None]:
    """Makes an arch function, which asks with ``getattr`` what is not set yet, work on a DictConfig too.

    fairseq 0.12.2's omegaconf answers such a question with None, and the arch function would take it for the user's.
    """

    def set_flags_in_place(args: Any) -> None:
        namespace = as_namespace(args)
        set_flags(namespace)
        if namespace is not args:
            # 0.12.2's trainer compares base_layers, for the same reason
            for name, value in {"base_layers": 0, **vars(namespace)}.items():
                args[name] = value

    return set_flags_in_place


def drop_fast_path_weights(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes the second copy of an encoder layer's weights that fairseq 0.12.2 writes, in place.

    Args:
        state_dict: of a checkpoint.
        prefix: of the layer: ``encoder.layers.0.``
    """
    for name in ("in_proj", "out_proj", "fc1", "fc2"):
        for kind in ("weight", "bias"):
            state_dict.pop(f"{prefix}{name}_{kind}", None)


def world_size() -> int:
    """Number of processes that train together; 1 where training is not distributed."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if distributed else 1
