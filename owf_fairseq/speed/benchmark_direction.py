"""The speed of multilingual models in one direction: `owf benchmark`, with the language tags of fairseq's task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from owf_fairseq.errors import InputError
from owf_fairseq.speed.benchmark import prepare_benchmark
from owf_fairseq.speed.benchmark_models import Candidate, Loading
from owf_fairseq.speed.benchmark_names import Named
from owf_fairseq.speed.options import BenchmarkOptions

if TYPE_CHECKING:
    from owf_fairseq.decoding.multilingual import MultilingualBackend


@dataclass(frozen=True)
class DirectionCandidate(Candidate):
    """A multilingual model that is going to be measured.

    Attributes:
        direction: as ``de-en``.
    """

    direction: str = ""

    def load(self, loading: Loading) -> MultilingualBackend:
        """See ``Candidate``."""
        from owf_fairseq.decoding.multilingual import MultilingualBackend

        model, how = self.named.model, (loading.data, loading.cpu, loading.fp16, loading.packed)
        backend = MultilingualBackend.from_checkpoint(model, *how)
        backend.choose(self.direction)
        return backend


def prepare_direction(named: Sequence[Named], direction: str, options: BenchmarkOptions) -> list[DirectionCandidate]:
    """Looks at everything that was given, as ``benchmark.prepare_benchmark`` does; ``benchmark`` then measures.

    Args:
        named: checkpoints of multilingual models.
        direction: as ``de-en``.
        options: of the benchmark.

    Raises:
        InputError: with every problem.
    """
    archs = [one.model for one in named if one.is_arch]
    if archs:
        raise InputError(f"{', '.join(archs)}: a direction is of a checkpoint, and an arch has none")
    return [DirectionCandidate(**vars(one), direction=direction) for one in prepare_benchmark(named, (), options)]
