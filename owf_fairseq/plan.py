"""Which block every layer uses: the result of a model's flags."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from owf_fairseq.errors import InputError, collect
from owf_fairseq.flag_checks import (
    HasFlags,
    impossible_numbers,
    not_in_one_stack,
    one_ffn_for_both_stacks,
    unsupported,
)
from owf_fairseq.flags import FFN_LAYER_NORMS, LARGEST_SIZES, PATTERN_FLAGS, flag_name
from owf_fairseq.patterns import Pattern, make_pattern, number_of_blocks
from owf_fairseq.per_layer import PerLayer, parse_per_layer


@dataclass(frozen=True)
class Plan:
    """Which block every layer uses, the result of valid flags.

    Attributes:
        ffn: for the encoder's layers and then the decoder's, so that both can name the same block.
        ffn_widths: for the same layers d_ff of the FFN that they use, 0 where it is dropped.
        encoder_self_attn, decoder_self_attn, decoder_cross_attn: one number a layer.
        per_layer: what layers that share an FFN have of their own.
    """

    ffn: Pattern
    ffn_widths: list[int]
    encoder_self_attn: Pattern
    decoder_self_attn: Pattern
    decoder_cross_attn: Pattern
    per_layer: PerLayer

    @property
    def shares(self) -> bool:
        """Whether any block serves more than one layer."""
        return any(number_of_blocks(pattern) < len(pattern) - pattern.count(None) for pattern in self.patterns)

    @property
    def is_vanilla(self) -> bool:
        """Whether every layer has blocks of its own, all of them, and like the others of its stack."""
        dropped = any(None in pattern for pattern in self.patterns)
        alike = all(len(set(self.ffn_of(stack)[1])) < 2 for stack in ("encoder", "decoder"))
        return not self.shares and not dropped and alike

    def ffn_of(self, stack: str) -> tuple[Pattern, list[int]]:
        """The part of ``ffn`` and of ``ffn_widths`` that is of ``encoder`` or ``decoder``."""
        layers = len(self.encoder_self_attn)
        part = slice(None, layers) if stack == "encoder" else slice(layers, None)
        return self.ffn[part], self.ffn_widths[part]

    @property
    def ffn_users(self) -> list[list[int]]:
        """The layers of each FFN, in the order of its first use."""
        return users(self.ffn)

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Those of FFNs, of the encoder's and the decoder's self-attention, and of cross-attention."""
        return (self.ffn, self.encoder_self_attn, self.decoder_self_attn, self.decoder_cross_attn)


def users(pattern: Pattern) -> list[list[int]]:
    """The layers of each block of a pattern, in the order of its number's first use."""
    layers: dict[int, list[int]] = {}
    for layer, number in enumerate(pattern):
        if number is not None:
            layers.setdefault(number, []).append(layer)
    return list(layers.values())


def make_plan(args: HasFlags) -> Plan:
    """Reads and checks the flags of a model.

    Args:
        args: fairseq's flags and ours, after the arch function has filled in what was not given.

    Raises:
        InputError: with every problem of these flags at once.
    """
    problems = impossible_numbers(args)
    if args.decoder_only:
        problems += not_in_one_stack(args)
    if problems:  # the patterns depend on the numbers of layers
        raise InputError(problems)
    patterns: dict[str, Pattern] = {}
    for name in PATTERN_FLAGS:
        layers = args.encoder_layers if name.startswith("encoder") else args.decoder_layers
        try:
            patterns[name] = make_pattern(getattr(args, name), layers, flag=flag_name(name))
        except InputError as error:
            problems += error.problems
            patterns[name] = []  # the other problems are to be found too
    widths = {stack: _ffn_widths(args, stack, patterns[f"{stack}_ffn"], problems) for stack in ("encoder", "decoder")}
    decoder_ffn = patterns["decoder_ffn"]
    if args.share_encoder_decoder_ffn:
        blocks = {stack: number_of_blocks(patterns[f"{stack}_ffn"] or [0]) for stack in widths}  # of a bad pattern: 1
        problems += one_ffn_for_both_stacks(args, widths, blocks)
    else:
        decoder_ffn = [None if number is None else args.encoder_layers + number for number in decoder_ffn]
    plan = Plan(
        ffn=patterns["encoder_ffn"] + decoder_ffn,
        ffn_widths=widths["encoder"] + widths["decoder"],
        encoder_self_attn=patterns["encoder_self_attn"],
        decoder_self_attn=patterns["decoder_self_attn"],
        decoder_cross_attn=patterns["decoder_cross_attn"],
        per_layer=_per_layer(args, problems),
    )
    if all(len(layers) == 1 for layers in plan.ffn_users):
        plan = replace(plan, per_layer=PerLayer())  # an FFN of one layer is that layer's own anyway
    if not problems:
        problems += _rank_too_high(args, plan) + _source_not_read(args, plan)
    problems += unsupported(args, vanilla=plan.is_vanilla, shares=plan.shares, terms=plan.per_layer.changes_weights)
    if problems:
        raise InputError(problems)
    return plan


def _ffn_widths(args: HasFlags, stack: str, pattern: Pattern, problems: list[str]) -> list[int]:
    """d_ff of each layer's FFN, 0 where it is dropped: one for the stack, or the list of one for each block."""
    name = f"{stack}_ffn_widths"
    text, blocks = str(getattr(args, name)), number_of_blocks(pattern)
    of_blocks = [getattr(args, f"{stack}_ffn_embed_dim")] * blocks
    if text and pattern:
        words = [word.strip() for word in text.split(",")]
        largest = LARGEST_SIZES["ffn_embed_dim"]
        if not all(re.fullmatch("[0-9]{1,9}", word) and 1 <= int(word) <= largest for word in words):
            problems.append(
                f"`{flag_name(name)}` must be numbers from 1 to {largest:,} with commas between them, but is '{text}'"
            )
        elif len(words) != blocks:
            problems.append(
                f"`{flag_name(name)}` must be one number for each block of `{flag_name(stack + '_ffn')} "
                f"{getattr(args, stack + '_ffn')}`, in the order of their first use: {blocks}, but is '{text}'"
            )
        else:
            of_blocks = [int(word) for word in words]
    return [0 if number is None else of_blocks[number] for number in pattern]


def _per_layer(args: HasFlags, problems: list[str]) -> PerLayer:
    """The terms of ``--ffn-per-layer``; ``--ffn-layer-norm per-layer`` is an older spelling of one of them."""
    if args.ffn_layer_norm not in FFN_LAYER_NORMS:
        problems.append(
            f"`--ffn-layer-norm` must be one of {', '.join(FFN_LAYER_NORMS)}, but is '{args.ffn_layer_norm}'"
        )
    terms = collect(problems, lambda: parse_per_layer(str(args.ffn_per_layer))) or PerLayer()
    return PerLayer(terms.norm or args.ffn_layer_norm == "per-layer", terms.bias, terms.scale, terms.lora)


def _rank_too_high(args: HasFlags, plan: Plan) -> list[str]:
    """Whether a rank is above that of the matrices which it adds to."""
    problems = []
    for layers in plan.ffn_users:
        stack = "encoder" if layers[0] < args.encoder_layers else "decoder"
        least = min(plan.ffn_widths[layers[0]], getattr(args, f"{stack}_embed_dim"))
        if len(layers) > 1 and plan.per_layer.lora > least:
            problems.append(
                f"`--ffn-per-layer lora-{plan.per_layer.lora}`: the rank is at most {least} here, the smaller side of "
                f"a shared FFN of the {stack}"
            )
    return list(dict.fromkeys(problems))


def _source_not_read(args: HasFlags, plan: Plan) -> list[str]:
    """A model whose every target position would be blind to the source."""
    if args.decoder_only and plan.decoder_self_attn.count(None) == args.decoder_layers:
        return [
            "`--decoder-self-attn` drops the self-attention of every layer: nothing would read the source; leave it in "
            "one layer at least"
        ]
    crosses = not (args.decoder_only or args.no_cross_attention)
    if crosses and plan.decoder_cross_attn.count(None) == args.decoder_layers:
        return [
            "`--decoder-cross-attn` drops the cross-attention of every layer: nothing would read the source; leave it "
            "in one layer at least"
        ]
    return []
