"""The only file that knows which fairseq and which torch is installed.

The plugin runs on the official fairseq 0.12.2 (Python 3.10) and on two published builds of its main branch (Python 3.11
and 3.12), which differ in a few places that all meet here.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.models.transformer import TransformerConfig
from omegaconf import DictConfig, OmegaConf

from owf_fairseq.errors import InputError


class EncoderLayerCompat(torch.nn.Module):
    """What fairseq 0.12.2's encoder reads from its layers.

    Its stock layer keeps a second copy of the weights for a fused kernel that it takes in eval mode. That kernel knows
    nothing of shared or dropped FFNs: our layers answer that they have no such copy, and the encoder calls ``forward``.
    """

    load_to_BT = False


def torch_version() -> tuple[int, int]:
    """The installed torch's major and minor version."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def allow_fairseq_checkpoints() -> None:
    """Lets torch read the checkpoints that fairseq writes under ``weights_only``, its default since 2.6.

    torch then refuses everything that is not on its list. A checkpoint of fairseq-train holds its flags in a Namespace,
    and, after ``--eval-bleu``, counts in numpy arrays. None of these runs code while it is made, so that a pickle that
    would is still refused.
    """
    scalar_types = (np.float16, np.float32, np.float64, np.int32, np.int64, np.bool_)
    dtypes = [type(np.dtype(scalar_type)) for scalar_type in scalar_types]
    make_array: Any = np.zeros(1).__reduce__()[0]
    make_scalar: Any = np.float64().__reduce__()[0]
    # the two functions live in numpy.core in numpy 1, in numpy._core in numpy 2; a checkpoint names either
    functions = [
        (function, f"numpy.{core}.multiarray.{function.__name__}")
        for function in (make_array, make_scalar)
        for core in ("core", "_core")
    ]
    names = functions if torch_version() >= (2, 6) else [make_array, make_scalar]  # earlier ones take no names
    torch.serialization.add_safe_globals([argparse.Namespace, np.ndarray, np.dtype, *dtypes, *names])


def load_safely(path: str, *, mapped: bool) -> Any:
    """Reads what torch has written, under ``weights_only`` whatever the version's default.

    Args:
        path: the file.
        mapped: leave tensors on the disk until they are used.

    Raises:
        Exception: torch's, of many types, for a file that it cannot or will not read.
    """
    allow_fairseq_checkpoints()
    return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


def allow_literals_only() -> None:
    """Makes fairseq read what it would evaluate as Python: numbers, text and lists of them, and nothing that is run.

    Many of its flags are text that it hands to ``eval`` while it builds a model, an optimizer or a criterion; a
    checkpoint holds flags, and so it could run anything. A name that a module defines comes before the builtin of that
    name: this gives one to each module of fairseq's that is loaded, which are all that have models, tasks, optimizers
    and criterions, since fairseq imports them to register them. fairseq itself relies on the rest of Python in no flag.
    """
    folders = {
        Path(spec.origin).parent
        for spec in map(importlib.util.find_spec, ("fairseq", "fairseq_cli"))
        if spec is not None and spec.origin is not None
    }
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not folders.isdisjoint(Path(file).parents):
            vars(module)["eval"] = read_literal


_MOST_REPEATED = 10_000  # entries of a list that is written as a product


def read_literal(text: str) -> Any:
    """What ``eval`` returns for a literal; also for sums and multiples of lists (``[(512, 3)] * 20``, fairseq's fconv).

    Raises:
        InputError: the text is something else; it names the flag where the text is one's value.
        TypeError: it is no text, as ``eval`` says it; fairseq relies on that.
    """
    if not isinstance(text, str):
        raise TypeError(f"a literal must be text, but is {type(text).__name__}")
    try:
        return _value(ast.parse(text.lstrip(" \t"), mode="eval").body)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # the last two from ever deeper brackets
        name = _flag_with(text)
        subject = "a flag" if name is None else f"`--{name.replace('_', '-')}`"
        shown = text if len(text) <= 80 else f"{text[:80]}..."
        raise InputError(
            f"{subject} is {shown!r}, which is not read as Python: it must be a number, text in quotes, None, or a "
            "list of them, as in '(0.9, 0.98)' or '[0.001]'"
        ) from None


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(left, list) and isinstance(node.op, ast.Add) and isinstance(right, list):
            return left + right
        if isinstance(left, list) and isinstance(node.op, ast.Mult) and type(right) is int:
            if len(left) * right <= _MOST_REPEATED:
                return left * right
            raise ValueError
    return ast.literal_eval(node)


def _flag_with(text: str) -> str | None:
    """The flag whose value the text is, among all flags that the running functions have at hand."""
    frame, found = sys._getframe(1), None
    while frame.f_back is not None:
        frame = frame.f_back
        holders = list(frame.f_locals.values())
        holders += [getattr(frame.f_locals.get("self"), name, None) for name in ("args", "cfg")]
        for holder in holders:
            for name, value in _flags_in(holder):
                if isinstance(value, str) and value == text:
                    found = name  # further out it has its full name: `encoder_...` for a part of the encoder
    return found


def _flags_in(holder: Any) -> Iterator[tuple[str, Any]]:
    """Flags and their values, if this is something that holds flags."""
    if isinstance(holder, DictConfig):
        holder = OmegaConf.to_container(holder)
    if isinstance(holder, (argparse.Namespace, FairseqDataclass)):
        holder = vars(holder)
    if isinstance(holder, Mapping):
        yield from ((name, value) for name, value in holder.items() if isinstance(name, str) and name.isidentifier())


def keep_async_checkpoints_whole() -> None:
    """Makes fairseq's ``--save-async`` write what is to be saved.

    iopath writes later, in a thread of its own, what it is handed now. torch hands it memory that is the file's only
    during the call: with today's torch a checkpoint is then full of whatever has come there since, of fairseq's own
    models too, and nobody is told. A finished copy stays what it is.
    """
    save = checkpoint_utils._torch_persistent_save
    if getattr(save, "hands_over_a_copy", False):
        return

    def save_a_copy(obj: Any, file: Any) -> None:
        if not type(file).__module__.startswith("iopath."):
            return save(obj, file)
        copy = io.BytesIO()
        save(obj, copy)
        file.write(copy.getvalue())

    vars(save_a_copy)["hands_over_a_copy"] = True
    checkpoint_utils._torch_persistent_save = save_a_copy


def as_namespace(args: Any) -> argparse.Namespace | TransformerConfig:
    """A model's flags in a form that fairseq's TransformerConfig can read; fairseq-hydra-train gives a DictConfig."""
    if isinstance(args, DictConfig):
        given = OmegaConf.to_container(args, resolve=True)
        return argparse.Namespace(**{str(name): value for name, value in given.items() if value is not None})
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


def is_parsing() -> bool:
    """Whether fairseq's command line is being parsed, where bad usage ends the program as argparse would."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "parse_args_and_arch":
            return True
    return False


def drop_fast_path_weights(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes the second copy of an encoder layer's weights that fairseq 0.12.2 writes, in place.

    Args:
        state_dict: of a checkpoint.
        prefix: of the layer: ``encoder.layers.0.``
    """
    for name in ("in_proj", "out_proj", "fc1", "fc2"):
        for kind in ("weight", "bias"):
            state_dict.pop(f"{prefix}{name}_{kind}", None)


def can_pack() -> bool:
    """Whether this torch has oneDNN's packed matrix products (torch's compiler uses them too); not all builds do."""
    return torch.backends.mkldnn.is_available() and all(
        hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
    )


def pack_matrix(weight: torch.Tensor, rows: int) -> torch.Tensor:
    """A copy of a matrix (out, in) in oneDNN's order for products with about so many rows; only oneDNN can read it."""
    packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    return packed


def packed_product(x: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x W' + b, with W from ``pack_matrix``: (..., in) to (..., out)."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return product
