"""The weights of every layer of a converted model: which blocks of the source become which of the target."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from owf_fairseq.checkpoints.combine import FFN, FFN_NAMES, average_ffns, concatenate, different, mean, widen, zero
from owf_fairseq.checkpoints.stored_model import StoredModel
from owf_fairseq.errors import InputError
from owf_fairseq.plan import Plan
from owf_fairseq.sharing import Pattern

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
        args: the flags of the target, which differs in patterns and in the widths of FFNs only.
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
        for stack, attention, block in ATTENTIONS:
            self._attention(stack, attention, block)
        for layers in _users(plan.ffn):
            self._ffn(layers)
        self._dropped_ffns()
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
        pattern = getattr(self.plan, f"{stack}_{'cross_attn' if attention == 'encoder_attn' else attention}")
        for layers in _users(pattern):
            first = f"{stack}.layers.{layers[0]}.{attention}."
            parts = [name[len(first) :] for name in self.source.weights if name.startswith(first)]
            blocks = different(
                [(n, [self.source.weights[f"{stack}.layers.{n}.{attention}.{part}"] for part in parts]) for n in layers]
            )
            for index, part in enumerate(parts):
                value = self._combined([tensors[index] for _, tensors in blocks])
                for number in layers:
                    self.weights[f"{stack}.layers.{number}.{attention}.{part}"] = value
            if parts:
                how = "as before" if len(blocks) == 1 else f"{len(blocks)} become one: the mean of each projection"
                self.steps.append(Step(block, layers, len(blocks) == 1, how))

    def _ffn(self, layers: list[int]) -> None:
        """One FFN of the target, with its layer norm or norms."""
        stack = self._stack(layers[0])
        flag, width = f"--{stack}-ffn-embed-dim", getattr(self.args, f"{stack}_ffn_embed_dim")
        having = [number for number in layers if self._has_ffn(number)]
        if not having:
            self._add_ffn(layers, zero(getattr(self.args, f"{stack}_embed_dim"), width, self.generator))
            return
        blocks = [FFN(*tensors) for _, tensors in different([(n, self._named(n, FFN_NAMES)) for n in having])]
        widths = sorted({ffn.width for ffn in blocks})
        if self.init == "mean" and len(widths) > 1:
            self.problems.append(
                f"FFNs of the widths {' and '.join(map(str, widths))} have no mean: use `--init concat`"
            )
            return
        concatenated = self.init == "concat" and len(blocks) > 1
        least = sum(ffn.width for ffn in blocks) if concatenated else widths[-1]
        if width < least:
            of = f"concat of {len(blocks)} FFNs" if concatenated else "FFNs" if len(blocks) > 1 else "an FFN"
            self.problems.append(
                f"`{flag}` is {width} in the target, but {of} of width {', '.join(map(str, widths))} needs {least} (a "
                f"wider one is filled up with units that change nothing): give `{flag} {least}`"
            )
            return
        # a copy is left as it is, to the bit
        combined = blocks[0] if len(blocks) == 1 else concatenate(blocks) if concatenated else average_ffns(blocks)
        if width > least:
            combined = widen(combined, width, self.generator)
        self._put(layers, FFN_NAMES, combined)
        one_norm = self._layer_norms(layers)
        exact = len(blocks) == 1 and len(having) == len(layers) and one_norm
        self._ffn_steps(layers, exact, self._in_words(layers, having, blocks, width - least, one_norm, concatenated))

    def _in_words(
        self, layers: list[int], having: list[int], blocks: list[FFN], added: int, one_norm: bool, concatenated: bool
    ) -> str:
        words = "as before"
        if len(blocks) > 1:
            widths = ", ".join(dict.fromkeys(str(ffn.width) for ffn in blocks))
            what = "concatenated: the mean of their outputs" if concatenated else "the mean of their weights"
            words = f"{len(blocks)} of width {widths} become one, {what}"
        words += f"; {added} units added that change nothing" if added else ""
        words += "" if one_norm else "; the mean of their layer norms"
        return words + ("; used by layers that had none" if len(having) < len(layers) else "")

    def _layer_norms(self, layers: list[int]) -> bool:
        """The norms of an FFN: one for all layers, or one each; whether each layer has kept its own."""
        kept = True
        for group in [layers] if self.plan.share_ffn_layer_norm else [[number] for number in layers]:
            having = [number for number in group if self._has_ffn(number)] or [n for n in layers if self._has_ffn(n)]
            norms = different([(n, self._named(n, _norm("final_layer_norm"))) for n in having])
            values = [self._combined(list(tensors)) for tensors in zip(*(norm for _, norm in norms), strict=True)]
            self._put(group, _norm("final_layer_norm"), values)
            kept = kept and len(norms) == 1
        return kept

    def _add_ffn(self, layers: list[int], nothing: FFN) -> None:
        """An FFN where there was none, that changes nothing.

        Pre-norm: x + 0 = x. Post-norm: the layer norm behind the FFN takes over gain and bias of the one before it,
        which gets gain 1 and bias 0: a layer norm of what is normalised already is itself, up to its epsilon.
        """
        self._put(layers, FFN_NAMES, nothing)
        pre_norm = getattr(self.args, f"{self._stack(layers[0])}_normalize_before")
        for group in [layers] if self.plan.share_ffn_layer_norm else [[number] for number in layers]:
            before = {n: self._norm_before_ffn(n) for n in group}
            gain, bias = (
                self.source.weights[f"{before[group[0]]}.weight"],
                self.source.weights[f"{before[group[0]]}.bias"],
            )
            neutral = (torch.ones_like(gain), torch.zeros_like(bias))
            if pre_norm:
                self._put(group, _norm("final_layer_norm"), neutral)
                continue
            norms = different(
                [(n, [self.source.weights[f"{before[n]}.{w}"] for w in ("weight", "bias")]) for n in group]
            )
            if len(norms) > 1:
                numbers = " ".join(map(str, self._within(group)))
                self.problems.append(
                    f"{self._stack(layers[0])} layers {numbers} have no FFN, and one that they share cannot stand for "
                    "that: with post-norm each layer norm would have to move into the FFN's, which is shared too; give "
                    "`--ffn-layer-norm per-layer`"
                )
                continue
            self._put(group, _norm("final_layer_norm"), (gain, bias))
            for name in before.values():
                self.weights[f"{name}.weight"], self.weights[f"{name}.bias"] = neutral
        self._ffn_steps(layers, True, "there was none; added one that gives 0" + ("" if pre_norm else _TO_EPSILON))

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

    def _within(self, layers: Sequence[int]) -> list[int]:
        """The numbers of layers within their stack."""
        return [number if number < self.encoder_layers else number - self.encoder_layers for number in layers]

    def _has_ffn(self, number: int) -> bool:
        return f"{self.layer(number)}.fc1.weight" in self.source.weights

    def _norm_before_ffn(self, number: int) -> str:
        cross = f"{self.layer(number)}.encoder_attn_layer_norm"
        return cross if f"{cross}.weight" in self.source.weights else f"{self.layer(number)}.self_attn_layer_norm"

    def _named(self, number: int, names: Sequence[str]) -> list[Tensor]:
        return [self.source.weights[f"{self.layer(number)}.{name}"] for name in names]

    def _put(self, layers: Sequence[int], names: Sequence[str], values: Sequence[Tensor]) -> None:
        dtype = self.source.weights[f"{self._stack(layers[0])}.layers.0.self_attn_layer_norm.weight"].dtype
        for name, value in zip(names, values, strict=True):
            stored = value.to(dtype)
            for number in layers:
                self.weights[f"{self.layer(number)}.{name}"] = stored

    def _combined(self, tensors: list[Tensor]) -> Tensor:
        """The mean; of one tensor that very tensor."""
        return tensors[0] if len(tensors) == 1 else mean(tensors).to(tensors[0].dtype)


_TO_EPSILON = ", and moved the layer norm before it (exact up to the norm's epsilon)"


def _norm(name: str) -> tuple[str, str]:
    return f"{name}.weight", f"{name}.bias"


def _merged(steps: Sequence[Step]) -> list[Step]:
    """What was done to several blocks of a kind alike, as one step."""
    layers: dict[tuple[str, bool, str], list[int]] = {}
    for step in steps:
        layers.setdefault((step.block, step.exact, step.how), []).extend(step.layers)
    return [Step(block, sorted(numbers), exact, how) for (block, exact, how), numbers in layers.items()]


def _users(pattern: Pattern) -> list[list[int]]:
    """The layers of each block, in the order of its number's first use."""
    users: dict[int, list[int]] = {}
    for layer, number in enumerate(pattern):
        if number is not None:
            users.setdefault(number, []).append(layer)
    return list(users.values())


def _is_of_a_block(name: str) -> bool:
    """Whether a pattern speaks of this weight."""
    parts = name.split(".")
    return "layers" in parts and bool({"fc1", "fc2", "final_layer_norm", "self_attn", "encoder_attn"} & set(parts))
