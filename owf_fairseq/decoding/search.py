"""What every way of decoding takes and gives; which program runs the model is a backend's matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from owf_fairseq.data.segmentation import Segmentation


LARGEST_OPTIONS = {
    "beam": 10_000,
    "nbest": 10_000,
    "lenpen": 100,
    "max_len_a": 1_000_000,
    "max_len_b": 1_000_000_000,
    "min_len": 1_000_000_000,
}
"""Of the options of a search: larger ones can't be computed with."""


@dataclass(frozen=True)
class SearchOptions:
    """Beam search.

    Attributes:
        beam: hypotheses that are followed at a time.
        nbest: finished hypotheses that are wanted, at most ``beam``.
        lenpen: a hypothesis' score is its log-probability divided by its length, the end-of-sentence symbol included,
            to this power.
        max_len_a, max_len_b: a hypothesis has at most ``max_len_a`` times the pieces of its source, the
            end-of-sentence symbol included, plus ``max_len_b`` pieces. (fairseq-generate takes the longest source of
            the batch, so that a translation depends on its neighbours.)
        min_len: a hypothesis has at least this many pieces.
    """

    beam: int = 5
    nbest: int = 1
    lenpen: float = 1.0
    max_len_a: float = 2.0
    max_len_b: int = 10
    min_len: int = 1

    def problems(self) -> list[str]:
        """What is wrong with the values, a sentence each, naming the flags."""
        return [
            text
            for wrong, text in [
                (
                    not all(map(math.isfinite, (self.lenpen, self.max_len_a))),
                    f"`--lenpen` and `--max-len-a` must be numbers, but are {self.lenpen} and {self.max_len_a}",
                ),
                (self.beam < 1, f"`--beam` must be at least 1, but is {self.beam}"),
                (
                    not 1 <= self.nbest <= max(self.beam, 1),
                    f"`--nbest` must be from 1 to `--beam` ({self.beam}), but is {self.nbest}",
                ),
                (
                    self.max_len_a < 0 or self.max_len_b < 0,
                    "`--max-len-a` and `--max-len-b` must not be negative, but are "
                    f"{self.max_len_a:g} and {self.max_len_b}",
                ),
                (self.min_len < 0, f"`--min-len` must not be negative, but is {self.min_len}"),
                *(
                    (
                        abs(value) > LARGEST_OPTIONS[name],
                        f"`--{name.replace('_', '-')}` must be at most {LARGEST_OPTIONS[name]:,}",
                    )
                    for name, value in vars(self).items()
                ),
            ]
            if wrong
        ]

    def cap(self, source_pieces: int) -> int:
        """The most pieces that the translation of a source with so many, end-of-sentence symbol aside, may have."""
        return max(int(self.max_len_a * (source_pieces + 1) + self.max_len_b), self.min_len)


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    Attributes:
        pieces: without the end-of-sentence symbol.
        score: natural logarithm of the probability, divided by the length as ``SearchOptions.lenpen`` says.
        log_probability: natural logarithm of the probability of the pieces and the end-of-sentence symbol.
    """

    pieces: tuple[str, ...]
    score: float
    log_probability: float


class Backend(Protocol):
    """A model, ready to decode.

    Attributes:
        name: of the program that runs it.
        precision: of the weights that it computes with: float32, float16, bfloat16, or int8 and more.
        device_name: of what it runs on, as users know it: the GPU's name, or ``CPU``.
        max_source_length: pieces that a source may have, without the end-of-sentence symbol.
        max_target_length: pieces that a hypothesis can have, likewise.
        source_symbols: the pieces of the source vocabulary, special symbols aside.
    """

    name: str
    precision: str
    device_name: str
    max_source_length: int
    max_target_length: int

    @property
    def source_symbols(self) -> Sequence[str]: ...

    def segmentation(self, other: str | None = None) -> Segmentation:
        """How text becomes pieces.

        Args:
            other: see ``RecordedData.segmentation``.

        Raises:
            InputError: nothing was recorded, or the model was not trained on any data.
        """
        ...

    def files(self, other: str | None = None) -> list[Path]:
        """The files that were read for it, checkpoints aside.

        Args:
            other: see ``segmentation``.
        """
        ...

    def search(self, batch: Sequence[Sequence[str]], options: SearchOptions) -> list[list[Hypothesis]]:
        """Translates a batch of sentences, given as pieces without end-of-sentence symbols.

        Returns:
            For each sentence its ``options.nbest`` best hypotheses (or fewer, if the search found fewer), best first.
            They do not depend on the other sentences of the batch, up to rounding.
        """
        ...

    def synchronize(self) -> None:
        """Waits for the device to be done with what it was given."""
        ...
