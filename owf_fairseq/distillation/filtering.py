"""Translations that a student should not learn from."""

from __future__ import annotations

from dataclasses import dataclass

from owf_fairseq.files.visible import is_blank

REASONS = {
    "empty": "an empty side",
    "long": "a source longer than the teacher takes",
    "unfinished": "a translation that ended at its length cap",
    "copied": "a translation that is its source",
    "length": "a translation far from its source's length",
}
"""Why a pair is left out, as reports say it."""

_SLACK = 5
"""Pieces that a translation may differ by, whatever the ratio: of short lines it tells little."""


@dataclass(frozen=True)
class Filter:
    """What is left out.

    Attributes:
        max_ratio: one side may have at most so many times the pieces of the other, plus five.
        keep_copies: keep translations that are their sources.
    """

    max_ratio: float = 3.0
    keep_copies: bool = False

    def problems(self) -> list[str]:
        """What is wrong with the values, a sentence each, naming the flags."""
        return [] if self.max_ratio >= 1 else [f"`--max-ratio` must be at least 1, but is {self.max_ratio:g}"]

    def reason(self, source: str, translation: str, reference: str | None, lengths: tuple[int, int]) -> str | None:
        """Why a pair is left out, of ``REASONS``; None if it is kept.

        Args:
            source, translation: as text.
            reference: where there is one: what it copies, as names, a translation may copy too.
            lengths: of source and translation, in pieces.
        """
        if is_blank(source) or is_blank(translation):
            return "empty"
        plain = _plain(source)
        if not self.keep_copies and _plain(translation) == plain and (reference is None or _plain(reference) != plain):
            return "copied"
        if max(lengths) > self.max_ratio * min(lengths) + _SLACK:
            return "length"
        return None


def _plain(text: str) -> str:
    """A text without what does not make it another one: case, and how much white space there is."""
    return " ".join(text.casefold().split())
