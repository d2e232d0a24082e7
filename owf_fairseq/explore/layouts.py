"""A layout: which block every layer of a named size uses, and how wide its FFNs are, as the flags say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

from owf_fairseq.cost_model.cost import ModelShape, stack_shape
from owf_fairseq.paper.rows import PaperRow
from owf_fairseq.patterns import as_words, make_pattern, number_of_blocks
from owf_fairseq.per_layer import PerLayer
from owf_fairseq.sharing import SIZES, Size, arch_name

Widths = tuple[float, ...]
"""d_ff of each block of a stack, in the order of first use."""

Key = tuple[object, ...]


@cache
def numbers_of(pattern: str, layers: int) -> tuple[int | None, ...]:
    """What ``patterns.make_pattern`` makes of a pattern; there are few, and they are asked for often."""
    return tuple(make_pattern(pattern, layers))


@dataclass(frozen=True)
class Layout:
    """Which block every layer uses, by the flags' names.

    Attributes:
        size: a key of ``sharing.SIZES``; the model is ``owf_<size>`` with flags.
        encoder_ffn, decoder_ffn: patterns as they are written.
        encoder_self_attn, decoder_self_attn, decoder_cross_attn: the same.
        encoder_widths, decoder_widths: d_ff of each block of the stack.
        share_encoder_decoder_ffn: one FFN for both stacks.
        per_layer: what layers have of their own where they share an FFN.
    """

    size: str
    encoder_ffn: str = "individual"
    decoder_ffn: str = "individual"
    encoder_widths: Widths = ()
    decoder_widths: Widths = ()
    encoder_self_attn: str = "individual"
    decoder_self_attn: str = "individual"
    decoder_cross_attn: str = "individual"
    share_encoder_decoder_ffn: bool = False
    per_layer: PerLayer = PerLayer()

    @property
    def numbers(self) -> Size:
        """The size's numbers."""
        return SIZES[self.size]

    @property
    def arch(self) -> str:
        """The architecture that the flags are given to."""
        return arch_name(self.size, "individual")

    def layers(self, stack: str) -> int:
        """How many layers a stack has."""
        return self.numbers.encoder_layers if stack == "encoder" else self.numbers.decoder_layers

    def ffn(self, stack: str) -> tuple[int | None, ...]:
        """The number of each layer's FFN, None where it is dropped."""
        return numbers_of(self.encoder_ffn if stack == "encoder" else self.decoder_ffn, self.layers(stack))

    def widths(self, stack: str) -> Widths:
        """d_ff of each of a stack's FFNs."""
        return self.encoder_widths if stack == "encoder" else self.decoder_widths

    def attention(self, kind: str) -> tuple[int | None, ...]:
        """The number of each layer's ``encoder_self_attn``, ``decoder_self_attn`` or ``decoder_cross_attn``."""
        if kind == "decoder_cross_attn" and not self.numbers.encoder_layers:
            return (None,) * self.numbers.decoder_layers
        return numbers_of(getattr(self, kind), self.layers(kind.split("_")[0]))

    def users(self, stack: str, number: int) -> int:
        """How many layers, of both stacks, use an FFN."""
        here = self.ffn(stack).count(number)
        return here + self.ffn(_other(stack)).count(number) if self.share_encoder_decoder_ffn else here

    def ffn_layers(self, stack: str) -> int:
        """How many layers of a stack have an FFN."""
        return self.layers(stack) - self.ffn(stack).count(None)

    @cached_property
    def key(self) -> Key:
        """Equal where two layouts are the same model, however their patterns are written."""
        attention = (self.attention(f"{kind}_attn") for kind in ("encoder_self", "decoder_self", "decoder_cross"))
        ffns = ((self.ffn(stack), self.widths(stack)) for stack in ("encoder", "decoder"))
        return (*ffns, *attention, self.share_encoder_decoder_ffn, self.per_layer)

    def settings(self) -> dict[str, str]:
        """The flags that differ from the size's individual model, without dashes in front; a switch is ``true``."""
        found: dict[str, str] = {}
        for stack in self.numbers.stacks:
            widths = [int(width) for width in self.widths(stack)]
            pattern = self.encoder_ffn if stack == "encoder" else self.decoder_ffn
            if pattern != "individual":
                found[f"{stack}-ffn"] = pattern
            if len(set(widths)) > 1:
                found[f"{stack}-ffn-widths"] = ",".join(map(str, widths))
            elif widths and widths[0] != self.numbers.ffn_dim:
                found[f"{stack}-ffn-embed-dim"] = str(widths[0])
        if self.share_encoder_decoder_ffn:
            found["share-encoder-decoder-ffn"] = "true"
        for kind in ("encoder_self_attn", "decoder_self_attn", "decoder_cross_attn"):
            if getattr(self, kind) != "individual":
                found[kind.replace("_", "-")] = getattr(self, kind)
        if terms := str(self.per_layer):
            found["ffn-per-layer"] = terms
        return found

    def flags(self) -> list[str]:
        """The same as the words of a command line."""
        flags = self.settings().items()
        return [word for name, value in flags for word in as_words(f"--{name}", *([] if value == "true" else [value]))]

    def shape(self, vocab_size: int) -> ModelShape:
        """What the cost model looks at: the same as ``cost.shape_of_flags`` makes of the flags."""
        stacks = {}
        for stack in ("encoder", "decoder"):
            ffns, selves = self.ffn(stack), self.attention(f"{stack}_self_attn")
            crosses = self.attention("decoder_cross_attn") if stack == "decoder" else (None,) * len(ffns)
            widths = [0 if number is None else int(self.widths(stack)[number]) for number in ffns]
            shares = [number is not None and self.users(stack, number) > 1 for number in ffns]
            stacks[stack] = stack_shape(widths, selves, crosses, shares, self.per_layer)
        d = self.numbers.embed_dim
        return ModelShape(d, d, stacks["encoder"], stacks["decoder"], vocab_size, not self.numbers.encoder_layers)


def individual_layout(size: str) -> Layout:
    """The vanilla Transformer of a size."""
    numbers = SIZES[size]
    encoder, decoder = ((numbers.ffn_dim,) * n for n in (numbers.encoder_layers, numbers.decoder_layers))
    return Layout(size, encoder_widths=encoder, decoder_widths=decoder)


def layout_of_row(row: PaperRow) -> Layout:
    """The model of a row of the paper's tables."""
    size = SIZES[row.size]
    configuration = size.configurations[row.configuration]
    layout = Layout(row.size, **configuration.flags)  # type: ignore[arg-type]  # flags are named as the attributes are

    def widths(stack: str) -> Widths:
        width = row.shared_ffn_dim if configuration.shares_ffn(stack) else None
        return (width or size.ffn_dim,) * number_of_blocks(layout.ffn(stack))

    return replace(layout, encoder_widths=widths("encoder"), decoder_widths=widths("decoder"))


def _other(stack: str) -> str:
    return "decoder" if stack == "encoder" else "encoder"
