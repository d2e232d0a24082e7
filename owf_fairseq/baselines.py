"""Which model each one is compared with, where several sizes or tasks stand in one table.

The paper compares a row with the individual model of the row's own size: its scores' significance, its speed and its
parameters in %. This is the one place that knows which model that is. Needs neither torch nor fairseq.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from owf_fairseq.errors import InputError
from owf_fairseq.sharing import ARCHS

Baselines = dict[str, str]
"""The name of the model that each one is compared with, by its own name; a baseline has its own."""


def individual_models(archs: Mapping[str, str | None]) -> Baselines:
    """The individual model of the same size, for every model that has one among them.

    Args:
        archs: by the models' names, in their order; None for a model that is none of the paper's kind.
    """
    known = {name: ARCHS[arch] for name, arch in archs.items() if arch in ARCHS}
    individual: dict[str, str] = {}
    for name, (size, configuration) in known.items():
        if configuration == "individual":
            individual.setdefault(size, name)
    return {name: individual[size] for name, (size, _) in known.items() if size in individual}


def by_size(archs: Mapping[str, str | None]) -> Baselines:
    """`individual_models`; what has none among the models is compared with what the first one is compared with."""
    own = individual_models(archs)
    return {name: own.get(name, own.get(first, first)) for first in [*archs][:1] for name in archs}


def by_order(names: Sequence[str], baselines: Collection[str]) -> Baselines:
    """The last of the baselines that stands before a model, or the first of them where none does."""
    current = next((name for name in names if name in baselines), "")
    found = {}
    for name in names:
        current = name if name in baselines else current
        found[name] = current
    return found


def choose(archs: Mapping[str, str | None], baselines: Sequence[str], sizes: bool) -> Baselines:
    """What a command's flags ask for.

    Args:
        archs: see `individual_models`.
        baselines: names, of ``--baseline``; the first model if there are none.
        sizes: whether ``--by-size`` is given, which holds where no baseline is named.

    Raises:
        InputError: a baseline is none of the models.
    """
    if sizes and not baselines:
        return by_size(archs)
    problems = [
        f"`--baseline` {name} is none of the models: {', '.join(archs)}" for name in baselines if name not in archs
    ]
    if problems:
        raise InputError(problems)
    return by_order([*archs], baselines or [*archs][:1])


def compared_with(baselines: Mapping[str, str], name: str) -> str | None:
    """For JSON: the other model that one is compared with; None for a baseline, and where nothing is compared."""
    found = baselines.get(name)
    return None if found == name else found


def described(compared: Mapping[str, str | None]) -> str:
    """The baselines in a sentence: ``big``, or ``its baseline (base for base_no_dec; big for big_no_dec)``.

    Args:
        compared: what `compared_with` says of every model.
    """
    groups: dict[str, list[str]] = {name: [] for name, base in compared.items() if base is None}
    for name, base in compared.items():
        if base is not None:
            groups.setdefault(base, []).append(name)
    if len(groups) == 1:
        return next(iter(groups))
    pairs = [f"{base} for {', '.join(names)}" for base, names in groups.items() if names]
    return f"its baseline ({'; '.join(pairs) or 'no other model has one'})"
