"""Exact parameter counts of layouts by arithmetic, and the widths at which a layout has a given count.

``parameters.count_parameters`` builds each model to count it; here it takes microseconds. A test compares the two.
"""

from __future__ import annotations

from dataclasses import replace

from owf_fairseq.explore.families import Template
from owf_fairseq.explore.layouts import Layout, Widths

WIDEST = 2**22
"""The widest FFN that the flags take."""


def count_by_block(layout: Layout, vocab_size: int) -> dict[str, float]:
    """The parameters of a layout by the blocks of ``parameters.BLOCKS``, a shared tensor once.

    Args:
        layout: with one embedding matrix for source, target and output.
        vocab_size: symbols of fairseq's dictionary.

    Returns:
        Whole numbers, where the layout's widths are.
    """
    d = layout.numbers.embed_dim
    found: dict[str, float] = {"embeddings": vocab_size * d}
    for stack in ("encoder", "decoder"):
        for kind, name in _ATTENTIONS[stack]:
            numbers = layout.attention(kind)
            used = [number for number in numbers if number is not None]
            # four projections with biases; the layer norm stays each layer's own
            found[name] = len(set(used)) * 4 * (d * d + d) + len(used) * 2 * d
        found[f"{stack} FFN"] = _ffns(layout, stack)
    return found


_ATTENTIONS = {
    "encoder": (("encoder_self_attn", "encoder self-attention"),),
    "decoder": (
        ("decoder_self_attn", "decoder self-attention"),
        ("decoder_cross_attn", "decoder cross-attention"),
    ),
}


def count(layout: Layout, vocab_size: int) -> float:
    """The sum of ``count_by_block``."""
    return sum(count_by_block(layout, vocab_size).values())


def _ffns(layout: Layout, stack: str) -> float:
    d, own, total = layout.numbers.embed_dim, layout.per_layer, 0.0
    counted_before = layout.share_encoder_decoder_ffn and stack == "decoder"
    for number, width in enumerate(layout.widths(stack)):
        here, is_shared = layout.ffn(stack).count(number), layout.users(stack, number) > 1
        # fc1 and fc2, the bias of fc2; what layers that share have of their own, once for each of them
        once = 0 if counted_before else 1
        total += once * (2 * d * width + d)
        total += (here if is_shared and own.bias else once) * width
        total += (here if is_shared and own.norm else once) * 2 * d
        if is_shared:
            total += here * (own.scale * d + own.lora * 2 * (d + width))
    return total


def solve(template: Template, budget: float, vocab_size: int, multiple_of: int) -> Layout | None:
    """The template with the widths that bring it nearest to a budget.

    The count is a straight line in the widths: their unit is solved for exactly, and each width then rounded.

    Args:
        template: with the proportions of the widths.
        budget: parameters.
        vocab_size: symbols of the dictionary.
        multiple_of: of which the widths that are solved for are multiples.

    Returns:
        The layout; None if no widths that a model can have come near.
    """
    layout = template.layout
    if not template.solved:
        return layout

    def with_unit(unit: float, rounded: bool = False) -> Layout:
        def scaled(widths: Widths) -> Widths:
            if not rounded:
                return tuple(unit * width for width in widths)
            return tuple(max(multiple_of, multiple_of * round(unit * width / multiple_of)) for width in widths)

        return replace(
            layout,
            encoder_widths=scaled(layout.encoder_widths) if "encoder" in template.solved else layout.encoder_widths,
            decoder_widths=scaled(layout.decoder_widths) if "decoder" in template.solved else layout.decoder_widths,
        )

    fixed = count(with_unit(0), vocab_size)
    slope = count(with_unit(1), vocab_size) - fixed
    if budget <= fixed:
        return None
    found = with_unit((budget - fixed) / slope, rounded=True)
    widths = (*found.encoder_widths, *found.decoder_widths)
    least = max(1, min(layout.per_layer.lora, layout.numbers.embed_dim))
    return found if least <= min(widths) and max(widths) <= WIDEST else None
