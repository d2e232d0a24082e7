"""What every component of every layer makes of a sentence: the mean over the sentence's tokens (paper, Section 2.3).

A model reads the source and is made to read the reference, exactly as it does in training. Every layer is watched for
itself, so that a block which several layers share is captured once for each of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate
from torch import Tensor, nn

from owf_fairseq.analysis.settings import SUBLAYER
from owf_fairseq.decoding.translator import Batching
from owf_fairseq.progress import Progress

STACKS = ("encoder", "decoder")
"""Of a decoder-only model, ``encoder`` is its one stack at the source's positions, ``decoder`` at the target's."""

_LABELS = {"self_attn_layer_norm": "sa", "encoder_attn_layer_norm": "ca", "final_layer_norm": "ffn"}
"""The paper's names of a layer's components, by the layer norm that only this component of the layer has."""


TokenPair = tuple[Tensor, Tensor]
"""Source (S,) and target (T,) of a sentence as numbers, each ended by the end-of-sentence symbol."""


@dataclass(frozen=True)
class Stack:
    """The representations of a test set in one stack of a model.

    Attributes:
        modules: by label (``0.sa``, ``4.ca``, ``5.ffn``), in the order of the computation: (sentences, d_model), in
            float32, on the CPU.
        layers: likewise of whole layers, by number.
    """

    modules: dict[str, Tensor] = field(default_factory=dict)
    layers: dict[str, Tensor] = field(default_factory=dict)

    @property
    def components(self) -> dict[str, Tensor]:
        """Modules, then layers."""
        return {**self.modules, **self.layers}


Recorder = Callable[[str, str, bool, Tensor], None]
"""Is told the stack, the label, whether it is of a whole layer, and the activations (T, B, C)."""


def represent(
    model: Any,
    dictionaries: tuple[Dictionary, Dictionary],
    pairs: Sequence[TokenPair],
    *,
    capture: str = SUBLAYER,
    with_eos: bool = True,
    max_tokens: int = 4000,
    progress: Progress | None = None,
) -> dict[str, Stack]:
    """The representations of sentence pairs.

    Args:
        model: encoder-decoder or decoder-only, in eval mode; where its parameters are, there it computes.
        dictionaries: of source and target.
        pairs: of sentences.
        capture: one of ``CAPTURES``.
        with_eos: count the end-of-sentence symbol as a token: in the source its last one, in what the decoder reads
            the first one, which a target starts with. Without it, every sentence must have another token.
        max_tokens: of a batch, padding included; results don't depend on it, up to rounding.
        progress: is told of sentences.

    Returns:
        By stack. Of a decoder-only model's source, the last layer has nothing (it makes keys and values only).
    """
    source, target = dictionaries
    device = next(model.parameters()).device
    found: dict[str, Stack] = {stack: Stack() for stack in STACKS}
    kept: dict[str, Tensor] = {}  # for each stack the tokens that count, (T, B, 1), in float64
    numbers: list[int] = []

    def record(stack: str, label: str, whole: bool, x: Tensor) -> None:
        tokens = kept[stack]
        means = (x.double().masked_fill(tokens == 0, 0).sum(0) / tokens.sum(0)).float().cpu()
        place = found[stack].layers if whole else found[stack].modules
        place.setdefault(label, means.new_zeros(len(pairs), means.size(1)))[numbers] = means

    lengths = [max(len(one), len(other)) for one, other in pairs]
    with torch.inference_mode(), _watched(model, capture, record), warnings.catch_warnings():
        # the decoder's masks of padding and of the future are of two types, in every training with fairseq
        warnings.filterwarnings("ignore", message="Support for mismatched key_padding_mask")
        for batch in Batching(max_tokens).batches(lengths):
            samples = [{"id": n, "source": pairs[n][0], "target": pairs[n][1]} for n in batch]
            made = collate(samples, source.pad(), source.eos())  # as in training
            numbers = made["id"].tolist()
            net_input = {name: tensor.to(device) for name, tensor in made["net_input"].items()}
            for stack, name, dictionary in (
                ("encoder", "src_tokens", source),
                ("decoder", "prev_output_tokens", target),
            ):
                counts = net_input[name].ne(dictionary.pad())
                if not with_eos:
                    counts &= net_input[name].ne(dictionary.eos())
                kept[stack] = counts.t().unsqueeze(-1).double()
            model(**net_input, features_only=True)
            if progress is not None:
                progress.advance(len(batch))
    return found


@contextmanager
def _watched(model: Any, capture: str, record: Recorder) -> Iterator[None]:
    """Has everything recorded that the layers compute until the end."""
    stack = ""

    def enter(name: str, *_: Any) -> None:
        nonlocal stack
        stack = name

    def module(layer: Any, number: int, x: Tensor, residual: Tensor, layer_norm: nn.Module) -> Tensor:
        output: Tensor = type(layer).after_sublayer(layer, x, residual, layer_norm)
        (label,) = (label for name, label in _LABELS.items() if getattr(layer, name, None) is layer_norm)
        record(stack, f"{number}.{label}", False, output if capture == SUBLAYER else x)
        return output

    def whole(number: int, layer: Any, inputs: Any, output: Any) -> None:
        record(stack, str(number), True, output[0] if isinstance(output, tuple) else output)

    hooks = [getattr(model, name).register_forward_pre_hook(partial(enter, name)) for name in STACKS]
    layers = [list(getattr(getattr(model, name), "layers", ())) for name in STACKS]  # the one stack has no encoder's
    try:
        for number, layer in (pair for one in layers for pair in enumerate(one)):
            hooks.append(layer.register_forward_hook(partial(whole, number)))
            layer.after_sublayer = partial(module, layer, number)
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for layer in (layer for one in layers for layer in one):
            vars(layer).pop("after_sublayer", None)  # the method is the class's again
