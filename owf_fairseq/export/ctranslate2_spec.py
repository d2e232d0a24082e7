"""A model of ours in CTranslate2's stock Transformer layers.

CTranslate2 has no layer without an FFN or attention. A dropped one is expressed exactly by one that adds nothing:

- pre-norm, x + FFN(LN(x)): all weights are zero;
- post-norm, LN(x + FFN(x)): the same, and the layer norm before it, which becomes this sublayer's input, changes places
  with it: the sublayer before gets the gain 1 and the bias 0, and the FFN the real ones. (A layer norm of a vector that
  is normalised already is the vector itself, up to the norm's epsilon: ``normalised_twice`` is what that costs.)

What layers have of their own in a shared FFN is merged into its weights (``checkpoints.own_terms``); where that is a
bias or a layer norm only, the weights are still one tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from ctranslate2.converters import Converter
from ctranslate2.converters import fairseq as stock
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation
from ctranslate2.specs.model_spec import LayerSpec
from fairseq.data import Dictionary
from torch import Tensor, nn

from owf_fairseq.checkpoints.added_sublayers import norm_moves
from owf_fairseq.checkpoints.own_terms import merged_weight
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
        self._set_stack(spec.encoder, self.model.encoder, cfg.max_source_positions)
        self._set_stack(spec.decoder, self.model.decoder, cfg.max_target_positions)
        stock.set_linear(spec.decoder.projection, self.model.decoder.output_projection)
        spec.register_source_vocabulary(list(self.source.symbols))
        spec.register_target_vocabulary(list(self.target.symbols))
        # fairseq ends a source with this symbol, and begins a target with it
        spec.config.add_source_eos = True
        spec.config.decoder_start_token = spec.config.eos_token
        return spec

    def _set_stack(self, spec: LayerSpec, stack: Any, positions: int) -> None:
        """Everything of a stack; as many positions as fairseq lets a sentence have."""
        embeddings = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
        stock.set_embeddings(embeddings, stack.embed_tokens)
        spec.scale_embeddings = stack.embed_scale
        spec.position_encodings.encodings = position_encodings(stack.embed_positions, positions, self.half_positions)
        for name in ("layer_norm", "layernorm_embedding"):
            if getattr(stack, name) is not None:
                stock.set_layer_norm(getattr(spec, name), getattr(stack, name))
        norms = []
        for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
            for name in SUBLAYERS:
                if hasattr(layer_spec, name):
                    sublayer = getattr(layer_spec, name)
                    set_sublayer(sublayer, layer, name)
                    norms.append((sublayer.layer_norm, layer_norm_of(layer, name) is None))
        first = spec.layernorm_embedding if stack.layernorm_embedding is not None else None
        for before, norm in norm_moves(norms, first) if not self.model.cfg.encoder.normalize_before else ():
            assert before is not None  # `inexpressible` has seen to that
            norm.gamma, norm.beta, before.gamma, before.beta = before.gamma, before.beta, norm.gamma, norm.beta


SUBLAYERS = {"self_attention": "self_attn", "attention": "encoder_attn", "ffn": "final"}
"""CTranslate2's names of a layer's sublayers, in their order, and the beginning of fairseq's of their layer norms."""


def layer_norm_of(layer: Any, name: str) -> nn.Module | None:
    """The layer norm of one of a layer's ``SUBLAYERS``; None where the sublayer is dropped."""
    norm: nn.Module | None = getattr(layer, f"{SUBLAYERS[name]}_layer_norm", None)
    return norm


def set_sublayer(spec: LayerSpec, layer: Any, name: str) -> None:
    """Attention or FFN with its layer norm, or one that adds nothing, with a layer norm of gain 1 and bias 0.

    Args:
        spec: of the sublayer. layer: ours. name: one of ``SUBLAYERS``.
    """
    norm, dim = layer_norm_of(layer, name), layer.embed_dim
    if norm is not None:
        stock.set_layer_norm(spec.layer_norm, norm)
        if name == "ffn":
            set_feed_forward(spec, layer)
        else:
            attention = getattr(layer, SUBLAYERS[name])
            stock.set_multi_head_attention(spec, attention, self_attention=name == "self_attention")
        return
    if name == "ffn":
        shapes = [(_ZERO_FFN_WIDTH, dim), (dim, _ZERO_FFN_WIDTH)]
        linears = [spec.linear_0, spec.linear_1]
    else:  # queries, keys and values in one matrix, or queries apart; then the output
        shapes = [(3 * dim, dim), (dim, dim)] if name == "self_attention" else [(dim, dim), (2 * dim, dim), (dim, dim)]
        linears = spec.linear
    for linear, (rows, columns) in zip(linears, shapes, strict=True):
        linear.weight, linear.bias = np.zeros((rows, columns), np.float32), np.zeros(rows, np.float32)
    spec.layer_norm.gamma, spec.layer_norm.beta = np.ones(dim, np.float32), np.zeros(dim, np.float32)


def set_feed_forward(spec: LayerSpec, layer: Any) -> None:
    """The layer's FFN, its own terms merged into the weights."""
    weights = dict(layer.named_parameters())
    for linear, name in ((spec.linear_0, "fc1"), (spec.linear_1, "fc2")):
        linear.weight = merged_weight(weights, name).to(weights[f"{name}.weight"].dtype).numpy()
        linear.bias = weights[f"{name}.bias"].numpy()


_Place = tuple[nn.Module, Any]
"""A layer norm, and the layer or stack that it is used in; of a dropped sublayer its name in place of the norm."""


def _sublayers_of(layer: Any) -> list[str]:
    """Those whose layer norms can move: of a post-norm layer all that layers of its stack have."""
    if layer.normalize_before:
        return []
    return [name for name in SUBLAYERS if name != "attention" or hasattr(layer, "encoder_attn")]


@contextmanager
def normalised_twice(model: Any) -> Iterator[None]:
    """Lets a post-norm model apply as often, until the end, each layer norm as an exported model applies it.

    That is once more for each dropped sublayer right behind it. So the model computes what the exported one should, the
    epsilon of these norms included.
    """
    layers, hooks = [], []
    for stack in (model.encoder, model.decoder):
        # a norm that layers share is told apart by the layer
        first = None if stack.layernorm_embedding is None else (stack, stack.layernorm_embedding)
        norms = [
            ((layer, norm or name), norm is None)
            for layer in stack.layers
            for name in _sublayers_of(layer)
            for norm in [layer_norm_of(layer, name)]
        ]
        stands_for: dict[_Place, _Place] = {}
        for before, norm in norm_moves(norms, first):
            assert before is not None
            stands_for[norm] = stands_for.get(before, before)
        times = Counter(stands_for.values())
        if first is not None and first in times:
            hooks.append(stack.layernorm_embedding.register_forward_pre_hook(partial(_normalised, times[first])))
        for layer in stack.layers:
            layer.after_sublayer = partial(_after_sublayer, layer.after_sublayer, layer, times)
            layers.append(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.after_sublayer
        for hook in hooks:
            hook.remove()


def _after_sublayer(
    original: Callable[..., Tensor],
    layer: Any,
    times: Counter[_Place],
    x: Tensor,
    residual: Tensor,
    norm: Any,
) -> Tensor:
    more = times[layer, norm]
    return original(x, residual, lambda y: norm(*_normalised(more, norm, (y,))) if more else norm(y))


def _normalised(times: int, norm: nn.LayerNorm, inputs: tuple[Tensor]) -> tuple[Tensor]:
    (x,) = inputs
    for _ in range(times):
        x = F.layer_norm(x, norm.normalized_shape, eps=norm.eps)
    return (x,)


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
