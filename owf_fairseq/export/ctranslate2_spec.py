"""A model of ours in CTranslate2's stock Transformer layers.

CTranslate2 has no layer without an FFN. A dropped one is expressed exactly by an FFN that adds nothing:

- pre-norm, x + FFN(LN(x)): all weights are zero;
- post-norm, LN(x + FFN(x)): the same, and the layer norm before it, which becomes this sublayer's input, changes places
  with it: the sublayer before gets the gain 1 and the bias 0, and the FFN the real ones. (A layer norm of a vector that
  is normalised already is the vector itself, up to the norm's epsilon: ``normalised_twice`` is what that costs.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from ctranslate2.converters import Converter
from ctranslate2.converters import fairseq as stock
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation, LayerNormSpec
from ctranslate2.specs.model_spec import LayerSpec
from fairseq.data import Dictionary
from torch import Tensor, nn

from owf_fairseq.export.inexpressible import ACTIVATIONS

_LARGE_TABLE = 2**20
"""Bytes of positions."""

_ZERO_FFN_WIDTH = 8
"""Of the FFN that stands for a dropped one: the least that kernels for vectors have no special case for."""


class ModelConverter(Converter):
    """CTranslate2's converter, for a model that has been built.

    Shared blocks are stored once: CTranslate2 stores equal tensors under one name, as it reads them.

    Args:
        model: in eval mode, on the CPU; its flags have no ``inexpressible`` problem.
        source, target: dictionaries.
        half_positions: store a large table of positions in half precision, for a model whose matrices take one byte a
            number: four would be a fiftieth of its size.
    """

    def __init__(self, model: Any, source: Dictionary, target: Dictionary, half_positions: bool = False) -> None:
        self.model, self.source, self.target, self.half_positions = model, source, target, half_positions

    @torch.no_grad()
    def _load(self) -> TransformerSpec:
        cfg = self.model.cfg
        spec = TransformerSpec.from_config(
            (cfg.encoder.layers, cfg.decoder.layers),
            cfg.encoder.attention_heads,
            pre_norm=cfg.encoder.normalize_before,
            activation=Activation[ACTIVATIONS[cfg.activation_fn]],
            layernorm_embedding=cfg.layernorm_embedding,
        )
        self._set_stack(spec.encoder, self.model.encoder, cfg.max_source_positions, set_encoder_layer)
        self._set_stack(spec.decoder, self.model.decoder, cfg.max_target_positions, set_decoder_layer)
        stock.set_linear(spec.decoder.projection, self.model.decoder.output_projection)
        spec.register_source_vocabulary(list(self.source.symbols))
        spec.register_target_vocabulary(list(self.target.symbols))
        # fairseq ends a source with this symbol, and begins a target with it
        spec.config.add_source_eos = True
        spec.config.decoder_start_token = spec.config.eos_token
        return spec

    def _set_stack(
        self, spec: LayerSpec, stack: Any, positions: int, set_layer: Callable[[LayerSpec, Any], None]
    ) -> None:
        """Everything of a stack; as many positions as fairseq lets a sentence have."""
        embeddings = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
        stock.set_embeddings(embeddings, stack.embed_tokens)
        spec.scale_embeddings = stack.embed_scale
        spec.position_encodings.encodings = position_encodings(stack.embed_positions, positions, self.half_positions)
        for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
            set_layer(layer_spec, layer)
        for name in ("layer_norm", "layernorm_embedding"):
            if getattr(stack, name) is not None:
                stock.set_layer_norm(getattr(spec, name), getattr(stack, name))


def set_encoder_layer(spec: LayerSpec, layer: Any) -> None:
    """Self-attention and FFN."""
    set_self_attention(spec, layer)
    set_feed_forward(spec, layer, spec.self_attention.layer_norm, layer.self_attn_layer_norm)


def set_decoder_layer(spec: LayerSpec, layer: Any) -> None:
    """Self-attention, cross-attention and FFN."""
    set_self_attention(spec, layer)
    stock.set_multi_head_attention(spec.attention, layer.encoder_attn)
    stock.set_layer_norm(spec.attention.layer_norm, layer.encoder_attn_layer_norm)
    set_feed_forward(spec, layer, spec.attention.layer_norm, layer.encoder_attn_layer_norm)


def set_self_attention(spec: LayerSpec, layer: Any) -> None:
    """What both kinds of layers begin with."""
    stock.set_multi_head_attention(spec.self_attention, layer.self_attn, self_attention=True)
    stock.set_layer_norm(spec.self_attention.layer_norm, layer.self_attn_layer_norm)


def set_feed_forward(spec: LayerSpec, layer: Any, norm_before: LayerNormSpec, before: nn.Module) -> None:
    """The layer's FFN, or one that adds nothing.

    Args:
        spec: of the layer. layer: ours.
        norm_before: the layer norm of the sublayer before the FFN, as it is exported. before: as the model has it.
    """
    if layer.has_feed_forward:
        stock.set_ffn(spec.ffn, layer)
        return
    dim = layer.embed_dim
    shapes = ((spec.ffn.linear_0, _ZERO_FFN_WIDTH, dim), (spec.ffn.linear_1, dim, _ZERO_FFN_WIDTH))
    for linear, rows, columns in shapes:
        linear.weight, linear.bias = np.zeros((rows, columns), np.float32), np.zeros(rows, np.float32)
    identity = norm_before if not layer.normalize_before else spec.ffn.layer_norm
    if not layer.normalize_before:
        stock.set_layer_norm(spec.ffn.layer_norm, before)
    identity.gamma, identity.beta = np.ones(dim, np.float32), np.zeros(dim, np.float32)


@contextmanager
def normalised_twice(model: Any) -> Iterator[None]:
    """Lets a post-norm model apply twice, until the end, each layer norm that an exported model applies twice.

    So it computes what the exported model should, the epsilon of both norms included.
    """
    norms = [
        getattr(layer, name)
        for stack, name in ((model.encoder, "self_attn_layer_norm"), (model.decoder, "encoder_attn_layer_norm"))
        for layer in stack.layers
        if not (layer.has_feed_forward or layer.normalize_before)
    ]
    hooks = [norm.register_forward_pre_hook(_normalised) for norm in norms]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _normalised(norm: nn.LayerNorm, inputs: tuple[Tensor]) -> Tensor:
    return F.layer_norm(inputs[0], norm.normalized_shape, eps=norm.eps)


def position_encodings(embed_positions: Any, number: int, half: bool) -> np.ndarray[Any, Any]:
    """What is added at the first positions of a sentence, (number, C).

    Args:
        embed_positions: fairseq's learned or sinusoidal positions; those of padding come first.
        number: of positions.
        half: in half precision, if the table is large.
    """
    first = embed_positions.padding_idx + 1
    if isinstance(embed_positions, nn.Embedding):
        weights = embed_positions.weight
    else:
        dim = embed_positions.embedding_dim
        weights = embed_positions.get_embedding(first + number, dim, embed_positions.padding_idx)
    encodings: np.ndarray[Any, Any] = weights[first : first + number].numpy().astype(np.float32)
    return encodings.astype(np.float16) if half and encodings.nbytes > _LARGE_TABLE else encodings
