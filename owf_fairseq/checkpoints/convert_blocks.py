"""The weights of every layer of a converted model: which blocks of the source become which of the target."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from owf_fairseq.checkpoints.added_sublayers import NORM, PROJECTIONS, move_layer_norms, no_attention
from owf_fairseq.checkpoints.combine import (
    FFN,
    FFN_NAMES,
    average_ffns,
    concatenate,
    different,
    mean,
    same,
    widen,
    zero,
)
from owf_fairseq.checkpoints.own_terms import merged, own_terms
from owf_fairseq.checkpoints.stored_model import StoredModel
from owf_fairseq.errors import InputError
from owf_fairseq.plan import Plan, users

INITS = ("mean", "concat")
ATTENTIONS = (
    ("encoder", "self_attn", "encoder self-attention"),
    ("decoder", "self_attn", "decoder self-attention"),
    ("decoder", "encoder_attn", "decoder cross-attention"),
)


@dataclass(frozen=True)
class Step:
    """What was done to some blocks.

    Attributes:
        block: their kind. layers: those that use them, numbered from 0.
        exact: whether these layers compute what they did before.
        how: in words.
    """

    block: str
    layers: list[int]
    exact: bool
    how: str


class BlockConverter:
    """Makes the target's weights of the source's.

    Args:
        source: the model to convert.
        args: the flags of the target, which differs in patterns, and in widths and terms of FFNs only.
        plan: which block every layer of the target uses.
        init: how FFNs that become one are combined: ``mean`` or ``concat``.

    Attributes:
        weights: the target's, under every name.
        steps: what was done, in the order of the blocks.
    """

    def __init__(self, source: StoredModel, args: Namespace, plan: Plan, init: str) -> None:
        self.source, self.args, self.plan, self.init = source, args, plan, init
        self.generator = torch.Generator().manual_seed(1)  # the same conversion gives the same file
        self.encoder_layers = args.encoder_layers
        self.problems: list[str] = []
        self.steps: list[Step] = []
        self.weights = {name: tensor for name, tensor in source.weights.items() if not _is_of_a_block(name)}
        self.dtype = next(tensor.dtype for tensor in source.weights.values() if tensor.is_floating_point())
        self.added: set[str] = set()  # the layer norms of sublayers that the source has not
        for stack, attention, block in ATTENTIONS:
            self._attention(stack, attention, block)
        for layers in plan.ffn_users:
            self._ffn(layers)
        self._dropped_ffns()
        if not self.problems:
            self.problems += move_layer_norms(self.weights, args, self.added)
            self._shared_norms_agree()
        if self.problems:
            raise InputError(dict.fromkeys(self.problems))
        self.steps = _merged(self.steps)

    def layer(self, number: int) -> str:
        """The name of a layer in the state dict; the decoder's are numbered after the encoder's."""
        return f"{self._stack(number)}.layers.{self._within([number])[0]}"

    def _stack(self, number: int) -> str:
        return "encoder" if number < self.encoder_layers else "decoder"

    def _attention(self, stack: str, attention: str, block: str) -> None:
        """Attention that becomes one: the mean of each projection. Its layer norms are each layer's own anyway."""
        if attention == "encoder_attn" and (self.args.no_cross_attention or self.args.decoder_only):
            return
        pattern = getattr(self.plan, f"{stack}_{'cross_attn' if attention == 'encoder_attn' else attention}")
        for layers in users(pattern):
            having = [n for n in layers if self._has_attention(stack, n, attention)]
            self._attention_norms(stack, layers, attention)
            if not having:
                blocks = [[t.to(self.dtype) for t in no_attention(self.args, stack, attention, self.generator)]]
            else:
                found = [(n, self._of_layer(f"{stack}.layers.{n}.{attention}", PROJECTIONS)) for n in having]
                blocks = [list(tensors) for _, tensors in different(found)]
            for index, part in enumerate(PROJECTIONS):
                value = self._combined([tensors[index] for tensors in blocks])
                for number in layers:
                    self.weights[f"{stack}.layers.{number}.{attention}.{part}"] = value
            if not having:
                how = "there was none; added one that gives 0" + ("" if self._pre_norm(stack) else _TO_EPSILON)
                self.steps.append(Step(block, layers, True, how))
                continue
            how = "as before" if len(blocks) == 1 else f"{len(blocks)} become one: the mean of each projection"
            everywhere = len(having) == len(layers)
            how += "" if everywhere else "; used by layers that had none"
            self.steps.append(Step(block, layers, len(blocks) == 1 and everywhere, how))
        dropped = [n for n, number in enumerate(pattern) if number is None and self._has_attention(stack, n, attention)]
        if dropped:
            self.steps.append(Step(block, dropped, False, "dropped"))

    def _attention_norms(self, stack: str, layers: Sequence[int], attention: str) -> None:
        """The layer norm of every layer that has the attention; a new one where there was none."""
        for number in layers:
            norm = f"{stack}.layers.{number}.{attention}_layer_norm"
            there = self._has_attention(stack, number, attention)
            dim = getattr(self.args, f"{stack}_embed_dim")
            values = self._of_layer(norm, NORM) if there else [torch.ones(dim), torch.zeros(dim)]
            self.weights |= {f"{norm}.{part}": value.to(self.dtype) for part, value in zip(NORM, values, strict=True)}
            self.added |= set() if there else {norm}

    def _ffn(self, layers: list[int]) -> None:
        """One FFN of the target, with its layer norm or norms."""
        stack, width = self._stack(layers[0]), self.plan.ffn_widths[layers[0]]
        having = [number for number in layers if self._has_ffn(number)]
        if not having:
            nothing = zero(getattr(self.args, f"{stack}_embed_dim"), width, self.generator)
            self._put(layers, FFN_NAMES, nothing)
            self._own_terms(layers, dict.fromkeys(layers, nothing), nothing)
            self._new_norms(layers)
            how = "there was none; added one that gives 0" + ("" if self._pre_norm(stack) else _TO_EPSILON)
            self._ffn_steps(layers, True, how)
            return
        if self._keeps_terms(layers):
            for number in layers:
                first = f"{self.layer(number)}."
                parts = [name for name in self.source.weights if name.startswith((f"{first}fc1.", f"{first}fc2."))]
                self.weights |= {name: self.source.weights[name] for name in parts}
            one_norm = self._layer_norms(layers)
            self._ffn_steps(layers, one_norm, "as before" + ("" if one_norm else "; the mean of their layer norms"))
            return
        own = {number: merged(self.source.weights, self.layer(number)) for number in having}
        blocks = [FFN(*tensors) for _, tensors in different(list(own.items()))]
        combined = self._one_ffn(layers, blocks, width)
        if combined is None:
            return
        added = width - combined.width
        if added:
            combined = widen(combined, width, self.generator)
        self._put(layers, FFN_NAMES, combined)
        same = {n: combined if len(blocks) == 1 else own.get(n, combined) for n in layers}
        kept, exactly = self._own_terms(layers, same, combined)
        one_norm = self._layer_norms(layers)
        exact = (len(blocks) == 1 or exactly) and len(having) == len(layers) and one_norm
        how = self._in_words(layers, having, blocks, added, one_norm) + kept
        self._ffn_steps(layers, exact, how)

    def _keeps_terms(self, layers: list[int]) -> bool:
        """Whether these layers share just this FFN in the source too, with the same terms of their own."""
        before, now = self.source.plan, self.plan
        return (
            now.per_layer.changes_weights
            and before.per_layer == now.per_layer
            and layers in before.ffn_users
            and before.ffn_widths[layers[0]] == now.ffn_widths[layers[0]]
        )

    def _one_ffn(self, layers: list[int], blocks: list[FFN], width: int) -> FFN | None:
        """The FFN that several become, not wider than they need it; None with a problem."""
        widths = sorted({ffn.width for ffn in blocks})
        if self.init == "mean" and len(widths) > 1:
            self.problems.append(
                f"FFNs of the widths {' and '.join(map(str, widths))} have no mean: use `--init concat`"
            )
            return None
        concatenated = self.init == "concat" and len(blocks) > 1
        if concatenated and len(layers) > 1 and self.plan.per_layer.changes_weights:
            self.problems.append(
                "`--init concat` makes an FFN that is wider than those of the layers, to which `--ffn-per-layer` "
                f"{self.plan.per_layer} could add nothing of theirs: use `--init mean`"
            )
            return None
        least = sum(ffn.width for ffn in blocks) if concatenated else widths[-1]
        if width < least:
            stack = self._stack(layers[0])
            kind = "widths" if getattr(self.args, f"{stack}_ffn_widths") else "embed-dim"
            of = f"concat of {len(blocks)} FFNs" if concatenated else "FFNs" if len(blocks) > 1 else "an FFN"
            self.problems.append(
                f"`--{stack}-ffn-{kind}` is {width} in the target, but {of} of width {', '.join(map(str, widths))} "
                f"needs {least} (a wider one is filled up with units that change nothing): give "
                f"`--{stack}-ffn-{kind} {least}`"
            )
            return None
        # a copy is left as it is, to the bit
        return blocks[0] if len(blocks) == 1 else concatenate(blocks) if concatenated else average_ffns(blocks)

    def _own_terms(self, layers: list[int], own: Mapping[int, FFN], shared: FFN) -> tuple[str, bool]:
        """What each layer adds to a shared FFN: in words, and whether it then has just what it had."""
        if len(layers) < 2 or not self.plan.per_layer.changes_weights:
            return "", False
        before = after = 0.0
        for number in layers:
            terms, rest = own_terms(own[number], shared, self.plan.per_layer, self.generator)
            self._put([number], list(terms), list(terms.values()))
            before, after = before + rest[0], after + rest[1]
        exactly = after <= 1e-12 * before
        kept = f", which gives back {100 * (1 - after / before):.0f} % of their differences (squares)" if before else ""
        return f"; with {self.plan.per_layer} of each layer's own{kept}", exactly

    def _in_words(self, layers: list[int], having: list[int], blocks: list[FFN], added: int, one_norm: bool) -> str:
        words = "as before"
        if len(blocks) > 1:
            widths = ", ".join(dict.fromkeys(str(ffn.width) for ffn in blocks))
            what = "concatenated: the mean of their outputs" if self.init == "concat" else "the mean of their weights"
            words = f"{len(blocks)} of width {widths} become one, {what}"
        words += "; each layer's own terms merged into its weights" if self._terms_go(having) else ""
        words += f"; {added} units added that change nothing" if added else ""
        words += "" if one_norm else "; the mean of their layer norms"
        return words + ("; used by layers that had none" if len(having) < len(layers) else "")

    def _terms_go(self, layers: Sequence[int]) -> bool:
        return any(f"{self.layer(n)}.fc1.{term}" in self.source.weights for n in layers for term in ("scale", "lora_a"))

    def _layer_norms(self, layers: list[int]) -> bool:
        """The norms of an FFN: one for all layers, or one each; whether each layer has kept its own."""
        kept = True
        for group in [[number] for number in layers] if self.plan.per_layer.norm else [layers]:
            having = [number for number in group if self._has_ffn(number)] or [n for n in layers if self._has_ffn(n)]
            norms = different([(n, self._of_layer(self._ffn_norm(n), NORM)) for n in having])
            values = [self._combined(list(tensors)) for tensors in zip(*(norm for _, norm in norms), strict=True)]
            self._put(group, [f"final_layer_norm.{part}" for part in NORM], values)
            kept = kept and len(norms) == 1
        return kept

    def _new_norms(self, layers: list[int]) -> None:
        """Those of an FFN that was not there."""
        for number in layers:
            dim = getattr(self.args, f"{self._stack(number)}_embed_dim")
            self._put([number], [f"final_layer_norm.{p}" for p in NORM], [torch.ones(dim), torch.zeros(dim)])
            self.added.add(self._ffn_norm(number))

    def _shared_norms_agree(self) -> None:
        """Refuses layers that share an FFN with its layer norm, where only some of their norms had to move."""
        for layers in [] if self.plan.per_layer.norm else self.plan.ffn_users:
            norms = [[self.weights[f"{self._ffn_norm(n)}.{part}"] for part in NORM] for n in layers]
            if not all(same(norm, norms[0]) for norm in norms):
                numbers = " ".join(map(str, self._within(layers)))
                self.problems.append(
                    f"{self._stack(layers[0])} layers {numbers} share an FFN, and with it its layer norm, which cannot "
                    "stand for a sublayer that some of them have not: with post-norm each layer's norm would have to "
                    "move; give `--ffn-layer-norm per-layer`"
                )

    def _dropped_ffns(self) -> None:
        for stack in ("encoder", "decoder"):
            dropped = [
                number
                for number, block in enumerate(self.plan.ffn)
                if block is None and self._stack(number) == stack and self._has_ffn(number)
            ]
            if dropped:
                self._ffn_steps(dropped, False, "dropped")

    def _ffn_steps(self, layers: list[int], exact: bool, how: str) -> None:
        for stack in ("encoder", "decoder"):
            of_stack = [number for number in layers if self._stack(number) == stack]
            if of_stack:
                self.steps.append(Step(f"{stack} FFN", self._within(of_stack), exact, how))

    def _pre_norm(self, stack: str) -> bool:
        return bool(getattr(self.args, f"{stack}_normalize_before"))

    def _within(self, layers: Sequence[int]) -> list[int]:
        """The numbers of layers within their stack."""
        return [number if number < self.encoder_layers else number - self.encoder_layers for number in layers]

    def _has_ffn(self, number: int) -> bool:
        return f"{self.layer(number)}.fc1.weight" in self.source.weights

    def _has_attention(self, stack: str, number: int, attention: str) -> bool:
        return f"{stack}.layers.{number}.{attention}.out_proj.weight" in self.source.weights

    def _ffn_norm(self, number: int) -> str:
        return f"{self.layer(number)}.final_layer_norm"

    def _of_layer(self, name: str, parts: Sequence[str]) -> list[Tensor]:
        return [self.source.weights[f"{name}.{part}"] for part in parts]

    def _put(self, layers: Sequence[int], names: Sequence[str], values: Sequence[Tensor]) -> None:
        for name, value in zip(names, values, strict=True):
            stored = value.to(self.dtype)
            for number in layers:
                self.weights[f"{self.layer(number)}.{name}"] = stored

    def _combined(self, tensors: list[Tensor]) -> Tensor:
        """The mean; of one tensor that very tensor."""
        return tensors[0] if len(tensors) == 1 else mean(tensors).to(tensors[0].dtype)


_TO_EPSILON = ", and moved the layer norm before it (exact up to the norm's epsilon)"


def _merged(steps: Sequence[Step]) -> list[Step]:
    """What was done to several blocks of a kind alike, as one step."""
    layers: dict[tuple[str, bool, str], list[int]] = {}
    for step in steps:
        layers.setdefault((step.block, step.exact, step.how), []).extend(step.layers)
    return [Step(block, sorted(numbers), exact, how) for (block, exact, how), numbers in layers.items()]


def _is_of_a_block(name: str) -> bool:
    """Whether a pattern speaks of this weight."""
    parts = {part.removesuffix("_layer_norm") for part in name.split(".")}
    return "layers" in parts and bool({"fc1", "fc2", "final", "self_attn", "encoder_attn"} & parts)
