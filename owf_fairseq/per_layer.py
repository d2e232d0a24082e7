"""What layers that share an FFN keep for themselves: terms that tell them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from owf_fairseq.errors import InputError

TERMS = ("norm", "bias", "scale", "lora-R")
"""As they are written; R is the rank."""


@dataclass(frozen=True)
class PerLayer:
    """The terms that each layer has of its own where layers share an FFN; training begins as without them.

    Attributes:
        norm: the layer norm.
        bias: the bias of fc1: a learned offset of the layer's input, as fc1 sees it.
        scale: a diagonal on the input of fc1, one factor for each of its d_model numbers, 1 at the start
            (ResidualTransformer: arXiv:2310.02489).
        lora: the rank R of matrices B A that are added to fc1 and fc2, 0 at the start; 0 for none (EdgeFormer: Ge et
            al., 2022; Relaxed Recursive Transformers: arXiv:2410.20672).
    """

    norm: bool = False
    bias: bool = False
    scale: bool = False
    lora: int = 0

    def __str__(self) -> str:
        """As the flag is written."""
        words = [name for name in ("norm", "bias", "scale") if getattr(self, name)]
        return ",".join(words + ([f"lora-{self.lora}"] if self.lora else []))

    @property
    def changes_weights(self) -> bool:
        """Whether layers that share an FFN have other weights in it, and not its layer norm alone."""
        return self.bias or self.scale or self.lora > 0


def parse_per_layer(text: str, flag: str = "--ffn-per-layer") -> PerLayer:
    """Reads ``norm,bias,lora-4``; nothing is no term.

    Raises:
        InputError: an unknown term, or one that is given twice.
    """
    words = [word.strip() for word in text.split(",")] if text else []
    terms: dict[str, int] = {}
    for word in words:
        match = re.fullmatch(r"(norm|bias|scale)|lora-([1-9][0-9]{0,5})", word)
        if match is None:
            raise InputError(f"`{flag}` must be one or more of {', '.join(TERMS)}, with commas, but has '{word}'")
        name = match[1] or "lora"
        if name in terms:
            raise InputError(f"`{flag}` is '{text}': it has {name} twice")
        terms[name] = int(match[2] or 1)
    return PerLayer("norm" in terms, "bias" in terms, "scale" in terms, terms.get("lora", 0))
