"""Which sentence pairs of a test set all models can read: no other pair is compared."""

from __future__ import annotations

from collections.abc import Sequence

from owf_fairseq.analysis.cka import LEAST_SENTENCES
from owf_fairseq.analysis.lns import neighborhood_size
from owf_fairseq.analysis.representations import TokenPair
from owf_fairseq.errors import InputError, Warn


class Usable:
    """Which pairs all models can read.

    Args:
        total: pairs of the test set.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.blank: set[int] = set()
        self.long: set[int] = set()

    @property
    def kept(self) -> list[int]:
        """By number, from 0."""
        left = self.blank | self.long
        return [number for number in range(self.total) if number not in left]

    def see(self, pairs: Sequence[TokenPair], longest: tuple[int, int]) -> None:
        """Looks at the pairs as a model reads them.

        Args:
            pairs: all of them.
            longest: source and target that the model takes, without end-of-sentence symbols.
        """
        for number, pair in enumerate(pairs):
            lengths = [len(tokens) - 1 for tokens in pair]
            if 0 in lengths:
                self.blank.add(number)
            if any(length > most for length, most in zip(lengths, longest, strict=True)):
                self.long.add(number)

    def check(self, source: str, k: int | None, debiased: bool, warn: Warn) -> None:
        """Warns of pairs that are left out.

        Args:
            source: the file, to be named.
            k: neighbours of a sentence; None for the share of all sentences.
            debiased: the estimator of CKA.
            warn: is told.

        Raises:
            InputError: there are not enough others.
        """
        for left, why in ((self.blank, "blank on one side"), (self.long, "longer than a model takes")):
            if left:
                shown = ", ".join(str(number + 1) for number in sorted(left)[:5]) + (", ..." if len(left) > 5 else "")
                warn(f"{len(left):,} of {self.total:,} pairs are left out, {why}: line {shown}")
        there = len(self.kept)
        neighbors = neighborhood_size(there) if k is None else k
        least = max(neighbors + 1, LEAST_SENTENCES if debiased else 2)
        if there < least:
            flag = f"`--k` {k}" if k else "`--debiased`" if debiased else "a comparison"
            raise InputError(f"{source} has {there:,} sentences that can be used, but {flag} needs at least {least}")
