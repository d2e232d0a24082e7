"""Which layouts match a budget, how fast they should be, and which of them are on the Pareto front."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from owf_fairseq.cost_model.cost import Workload
from owf_fairseq.cost_model.device_profiles import DeviceProfile
from owf_fairseq.errors import InputError
from owf_fairseq.explore.counts import count, solve
from owf_fairseq.explore.families import DEFAULT, templates
from owf_fairseq.explore.layouts import Key, Layout, individual_layout

STEP = 0.1
"""Where the tolerance reaches further than that, widths are solved for at steps of this share of the budget too."""


@dataclass(frozen=True)
class Question:
    """What is looked for.

    Attributes:
        size: a key of ``sharing.SIZES``.
        vocab_size: symbols of the dictionary.
        budget: parameters. tolerance: how far from it a layout may be, as a share of it.
        families: names of ``families.FAMILIES``.
        multiple_of: of which widths are multiples.
    """

    size: str
    vocab_size: int
    budget: int
    tolerance: float = 0.01
    families: tuple[str, ...] = DEFAULT
    multiple_of: int = 64

    @property
    def least(self) -> float:
        """The fewest parameters that match."""
        return self.budget * (1 - self.tolerance)

    @property
    def most(self) -> float:
        """The most parameters that match."""
        return self.budget * (1 + self.tolerance)


@dataclass(frozen=True)
class Match:
    """A layout that matches the budget, and its parameters."""

    layout: Layout
    parameters: int


@dataclass(frozen=True)
class Timed:
    """A match under a workload.

    Attributes:
        layout, parameters: see ``Match``.
        tokens_per_s: predicted.
        rank: 1 for the fastest; one more than there are faster layouts.
        alike: how many layouts have the same parameters and the same speed, this one included.
        is_first: whether it is the first of these.
        on_front: whether no layout has as many parameters and is faster, or more and is as fast.
    """

    layout: Layout
    parameters: int
    tokens_per_s: float
    rank: int
    alike: int
    is_first: bool
    on_front: bool


def individual_count(size: str, vocab_size: int) -> int:
    """The parameters of the individual model, the budget where none is given."""
    return int(count(individual_layout(size), vocab_size))


def find_matches(question: Question) -> list[Match]:
    """The layouts of the families whose parameters match, each once.

    Raises:
        InputError: no layout matches.
    """
    found: dict[Key, Match] = {}
    missed: list[int] = []
    for layout in _candidates(question):
        if layout.key in found:
            continue
        parameters = int(count(layout, question.vocab_size))
        if question.least <= parameters <= question.most:
            found[layout.key] = Match(layout, parameters)
        else:
            missed.append(parameters)
    if found:
        return list(found.values())
    below = max((n for n in missed if n < question.budget), default=None)
    above = min((n for n in missed if n > question.budget), default=None)
    nearest = [f"{n:,}" for n in (below, above) if n is not None]
    near = f"; the nearest have {' and '.join(nearest)}" if nearest else ""
    raise InputError(
        f"no layout of family {', '.join(question.families)} has between {question.least:,.0f} and "
        f"{question.most:,.0f} parameters{near}: give other `--params`, a larger `--tolerance` or a smaller "
        "`--multiple-of`"
    )


def _candidates(question: Question) -> Iterator[Layout]:
    """Every layout with its widths: at the budget, and at steps from it as far as the tolerance reaches."""
    steps = int(question.tolerance / STEP + 1e-9)
    budgets = [question.budget * (1 + STEP * step) for step in sorted(range(-steps, steps + 1), key=abs)]
    for template in templates(question.size, question.families):
        for budget in budgets if template.solved else budgets[:1]:
            layout = solve(template, budget, question.vocab_size, question.multiple_of)
            if layout is not None:
                yield layout


def time_matches(
    matches: Sequence[Match], vocab_size: int, profile: DeviceProfile, workload: Workload, fp16: bool = False
) -> list[Timed]:
    """Predicts the speed of every match, fastest first; of equal speed, those with more parameters first."""
    speeds = [profile.tokens_per_s(match.layout.shape(vocab_size), workload, fp16) for match in matches]
    # what the order of the layers changes in the last digits of a sum is no difference in speed
    rounded = [float(f"{speed:.9g}") for speed in speeds]
    order = sorted(range(len(matches)), key=lambda one: (-rounded[one], -matches[one].parameters))
    alike = Counter((matches[one].parameters, rounded[one]) for one in order)
    at_front = _front(alike)
    timed: list[Timed] = []
    seen: set[tuple[int, float]] = set()
    rank, last = 0, float("inf")
    for place, one in enumerate(order, start=1):
        match, cost = matches[one], (matches[one].parameters, rounded[one])
        if rounded[one] < last:
            rank, last = place, rounded[one]
        timed.append(
            Timed(match.layout, match.parameters, speeds[one], rank, alike[cost], cost not in seen, cost in at_front)
        )
        seen.add(cost)
    return timed


def _front(costs: Iterable[tuple[int, float]]) -> set[tuple[int, float]]:
    """Those of (parameters, speed) that no other one surpasses in one without being behind in the other."""
    found: set[tuple[int, float]] = set()
    most = -1
    for parameters, speed in sorted(costs, key=lambda cost: (-cost[1], -cost[0])):
        if parameters > most:
            found.add((parameters, speed))
            most = parameters
    return found
