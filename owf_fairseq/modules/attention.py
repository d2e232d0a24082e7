"""Attention whose projections several layers share, while each keeps its own cache."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from fairseq.modules import MultiheadAttention
from torch import Tensor

from owf_fairseq.patterns import Pattern, blocks_in_order

IncrementalState = dict[str, dict[str, Tensor | None]]
"""The caches of incremental decoding, filed by attention object."""


def make_self_attention(
    cfg: Any, stack: Any, kind: type[MultiheadAttention] = MultiheadAttention
) -> MultiheadAttention:
    """Self-attention of ``cfg.encoder`` or ``cfg.decoder``, of the given kind."""
    return kind(
        stack.embed_dim,
        stack.attention_heads,
        dropout=cfg.attention_dropout,
        self_attention=True,
        q_noise=cfg.quant_noise.pq,
        qn_block_size=cfg.quant_noise.pq_block_size,
        xformers_att_config=stack.xformers_att_config,
    )


def make_cross_attention(cfg: Any) -> MultiheadAttention:
    """The decoder's attention to the encoder's output; as in fairseq, xFormers is configured by the encoder's flag."""
    return MultiheadAttention(
        cfg.decoder.embed_dim,
        cfg.decoder.attention_heads,
        kdim=cfg.encoder.embed_dim,
        vdim=cfg.encoder.embed_dim,
        dropout=cfg.attention_dropout,
        encoder_decoder_attention=True,
        q_noise=cfg.quant_noise.pq,
        qn_block_size=cfg.quant_noise.pq_block_size,
        xformers_att_config=cfg.encoder.xformers_att_config,
    )


def with_own_cache(attention: MultiheadAttention) -> MultiheadAttention:
    """Another attention with the very modules and parameters of the given one, and a cache of its own.

    fairseq files the keys and values of incremental decoding under an id of the attention object: one object in several
    layers would mix the layers' caches.
    """
    twin = copy.copy(attention)
    for name, value in vars(attention).items():
        if isinstance(value, dict):  # torch keeps submodules, parameters and hooks in dicts: same entries, own dict
            vars(twin)[name] = copy.copy(value)
    twin.init_incremental_state()
    return twin


def attention_in_order(numbers: Pattern, make: Callable[[], MultiheadAttention]) -> Iterator[MultiheadAttention | None]:
    """The attention of each layer in turn: projections by the pattern, an object and a cache for every layer.

    None where it is dropped.
    """
    seen: set[int] = set()
    for attention in blocks_in_order(numbers, lambda layer: make()):
        yield with_own_cache(attention) if attention is not None and id(attention) in seen else attention
        seen.add(id(attention))
