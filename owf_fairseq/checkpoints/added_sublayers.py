"""Sublayers that a conversion adds where a model has none: they give 0, and so change nothing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import torch
from torch import Tensor

Norm = TypeVar("Norm")

NORM = ("weight", "bias")
"""Of a layer norm, behind its name."""

PROJECTIONS = tuple(f"{name}.{part}" for name in ("q_proj", "k_proj", "v_proj", "out_proj") for part in NORM)
"""Of an attention, behind its name."""


def no_attention(args: Namespace, stack: str, attention: str, generator: torch.Generator) -> list[Tensor]:
    """``PROJECTIONS`` whose output is 0; those of queries, keys and values are random, so that training moves them.

    Args:
        args: the model's flags.
        stack: ``encoder`` or ``decoder``. attention: ``self_attn`` or ``encoder_attn``.
        generator: of the random ones.
    """
    dim = getattr(args, f"{stack}_embed_dim")
    read = args.encoder_embed_dim if attention == "encoder_attn" else dim
    values = []
    for part in PROJECTIONS:
        projection, kind = part.split(".")
        columns = read if projection in ("k_proj", "v_proj") else dim
        value = torch.zeros(dim, columns) if kind == "weight" else torch.zeros(dim)
        if kind == "weight" and projection != "out_proj":
            value.uniform_(-(columns**-0.5), columns**-0.5, generator=generator)
        values.append(value)
    return values


def norm_moves(norms: Iterable[tuple[Norm, bool]], first: Norm | None) -> Iterator[tuple[Norm | None, Norm]]:
    """Post-norm: how layer norms move, one after the other, so that a sublayer that gives 0 changes nothing.

    Its layer norm takes over gain and bias of the one before it, which gets gain 1 and bias 0: a layer norm of what is
    normalised already is itself, up to its epsilon.

    Args:
        norms: those of a stack's sublayers, in their order, and whether the sublayer is one that gives 0.
        first: that of the embeddings; None without one.

    Yields:
        From which norm to which; from None where nothing is normalised before, so that no norm can stand there.
    """
    before = first
    for norm, gives_nothing in norms:
        if gives_nothing:
            yield before, norm
        before = norm


def move_layer_norms(weights: dict[str, Tensor], args: Namespace, added: set[str]) -> list[str]:
    """Does so in a post-norm model's weights, in place; pre-norm nothing has to move.

    Args:
        weights: of the model, under every name.
        args: its flags.
        added: the names of the layer norms of the sublayers that were added.

    Returns:
        Why it is not possible; empty if it was.
    """
    problems = []
    for stack in ("encoder", "decoder"):
        if getattr(args, f"{stack}_normalize_before"):
            continue
        first = f"{stack}.layernorm_embedding"
        names = _layer_norms(weights, stack, getattr(args, f"{stack}_layers"))
        of_stack = ((name, name in added) for name in names)
        for before, norm in norm_moves(of_stack, first if f"{first}.weight" in weights else None):
            if before is None:
                problems.append(
                    f"the {stack} begins with a sublayer that was dropped: with post-norm, one that changes nothing "
                    "cannot stand there, because nothing is normalised before it"
                )
                continue
            for part, neutral in zip(NORM, (1.0, 0.0), strict=True):
                moved = weights[f"{before}.{part}"]
                weights[f"{norm}.{part}"] = moved
                weights[f"{before}.{part}"] = torch.full_like(moved, neutral)
    return problems


def _layer_norms(weights: Mapping[str, Tensor], stack: str, layers: int) -> Iterator[str]:
    """The names of all layer norms of a stack's layers, in the order of the sublayers."""
    for number in range(layers):
        for name in ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"):
            norm = f"{stack}.layers.{number}.{name}"
            if f"{norm}.weight" in weights:
                yield norm
