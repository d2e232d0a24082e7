"""Matrices laid out for the CPU's caches once, when a model is loaded, and not again at every product.

Decoding at small batches reads every weight for a handful of rows, and reads the wide FFN of an encoder for the words
of one sentence. Torch's products with such few rows reach a fraction of the memory's bandwidth and of the arithmetic;
oneDNN's, with the matrix in its own blocked order, most of both. The results are the same up to rounding.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from owf_fairseq import compat

_ROWS = 5
"""For which oneDNN chooses the order: a beam. It serves more rows and fewer as well."""

LEAST = 2**17
"""Elements of a matrix that is packed: calling oneDNN costs some 15 microseconds, more than a smaller one saves."""


class PackedLinear(nn.Module):
    """What ``nn.Linear`` computes, with weights that only this module can read.

    Args:
        linear: the module that it stands for; float32, on the CPU.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.packed = compat.pack_matrix(linear.weight.detach(), _ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """Maps (..., in) to (..., out)."""
        return compat.packed_product(x, self.packed, self.bias)


def pack(model: nn.Module) -> None:
    """Packs all of a model's large matrices that are used through ``nn.Linear``, in place; a shared one once.

    The model can only decode after that. Attention that reads a whole sentence at once takes its matrices from its
    modules and multiplies by itself (torch's ``multi_head_attention_forward``): the encoder's stays as it is.
    """
    packed: dict[int, nn.Module] = {}
    kept = {id(linear) for attention in _whole_sentence_attention(model) for linear in attention.children()}
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Linear and id(child) not in kept and child.weight.numel() >= LEAST:
                if id(child) not in packed:
                    packed[id(child)] = PackedLinear(child)
                setattr(module, name, packed[id(child)])


def _whole_sentence_attention(model: nn.Module) -> list[nn.Module]:
    encoder = cast(nn.Module, model.encoder)
    return [module for name, module in encoder.named_modules() if name.endswith("self_attn")]
