"""What is known of a model from its flags: the same in every table and every JSON."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from owf_fairseq.checkpoints.naming import named_arch
from owf_fairseq.checkpoints.stored_model import StoredModel, differing_flags, typed
from owf_fairseq.patterns import Pattern
from owf_fairseq.plan import make_plan
from owf_fairseq.sharing import configuration_of


@dataclass(frozen=True)
class ModelFacts:
    """What a model is, or models that decode together.

    Attributes:
        arch: the named one whose blocks it has (see ``named_arch``), or else the one that it was made with.
        configuration: the paper's name of it; None if it is no named arch.
        flags: where it differs from the arch's defaults, as they are typed; of an ensemble's first model.
        parameters: of all models, a shared tensor once.
        layers: by stack, of the first model.
        ffn_dims: d_ff by stack, None where a stack has no FFN, a list of one for each FFN where they differ; of the
            first model.
    """

    arch: str
    configuration: str | None
    flags: tuple[str, ...]
    parameters: int
    layers: dict[str, int]
    ffn_dims: dict[str, int | list[int] | None]

    def as_json(self) -> dict[str, Any]:
        """Its fields, by their names."""
        return {**vars(self), "flags": list(self.flags)}


def facts_of_stored(models: Sequence[StoredModel]) -> ModelFacts:
    """What checkpoints say of a model, or of an ensemble."""
    return facts_of_flags([(one.args, one.arch) for one in models], sum(one.parameters for one in models))


def facts_of_flags(models: Sequence[tuple[Namespace, str]], parameters: int) -> ModelFacts:
    """What flags say of a model, or of an ensemble.

    Args:
        models: the flags of each, with the arch's defaults filled in, and the arch that it was made with.
        parameters: of all of them.
    """
    found = {named_arch(args, arch) for args, arch in models}
    named = found.pop() if len(found) == 1 else None
    args, arch = models[0][0], named or models[0][1]
    plan = make_plan(args)
    stacks = ("encoder", "decoder")
    return ModelFacts(
        arch,
        None if named is None else configuration_of(named).paper,
        tuple(typed(differing_flags(args, arch))),
        parameters,
        {stack: len(plan.ffn_of(stack)[0]) for stack in stacks},
        {stack: _ffn_dim(*plan.ffn_of(stack)) for stack in stacks},
    )


def _ffn_dim(numbers: Pattern, widths: Sequence[int]) -> int | list[int] | None:
    """d_ff of a stack's FFNs: of each, in the order of their first use, where they differ."""
    by_block = {number: width for number, width in zip(numbers, widths, strict=True) if number is not None}
    dims = list(by_block.values())
    return dims if len(set(dims)) > 1 else next(iter(dims), None)
