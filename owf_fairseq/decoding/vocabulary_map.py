"""A lexical shortlist: which symbols a translation may have, by what its source has. CTranslate2's vocabulary map.

A line is a source piece (or several, with spaces between), a tab, and target pieces with spaces between; the line whose
source is empty lists what any translation may have. CTranslate2 keeps the last line of each source only, and it lets
every translation have ``<unk>``, ``<s>`` and ``</s>``. It computes the output layer for these symbols alone: the
probabilities of a step are those of the whole vocabulary, normalised over the shortlist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike, stream_lines, write_lines

VOCABULARY_MAP = "vmap.txt"
"""CTranslate2's name for the file, in the folder of a model."""

ALWAYS_ALLOWED = frozenset({"<unk>", "<s>", "</s>"})
"""By CTranslate2, whatever the file says."""


@dataclass(frozen=True)
class VocabularyMap:
    """A shortlist.

    Attributes:
        always: target pieces that any translation may have, CTranslate2's own among them.
        by_source: target pieces of each source n-gram, whose pieces have a space between.
    """

    always: frozenset[str]
    by_source: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "always", self.always | ALWAYS_ALLOWED)

    @classmethod
    def read(cls, path: PathLike) -> VocabularyMap:
        """Reads a file.

        Raises:
            InputError: it can't be read, or is none: it names the line.
        """
        always: frozenset[str] | None = None
        by_source: dict[str, tuple[str, ...]] = {}
        for number, line in enumerate(stream_lines(path), 1):
            source, tab, targets = line.partition("\t")
            if not tab or "\t" in targets:
                raise InputError(
                    f"{path}, line {number}: not SOURCE <tab> TARGET TARGET ...: this is no shortlist, such as `owf "
                    "shortlist` makes"
                )
            if source in by_source or (not source and always is not None):
                # CTranslate2 would take the last line only
                raise InputError(f"{path}, line {number}: there is a line before for {source or 'any translation'!r}")
            if source:
                by_source[source] = tuple(targets.split(" ")) if targets else ()
            else:
                always = frozenset(targets.split(" ") if targets else ())
        if always is None:
            raise InputError(f"{path} has no line of what any translation may have (one that begins with a tab)")
        return cls(always, by_source)

    def write(self, path: PathLike) -> None:
        """Writes the file, in an order that depends on what is in it alone."""
        lines = ((source, self.by_source[source]) for source in sorted(self.by_source))
        rows = [("", tuple(sorted(self.always - ALWAYS_ALLOWED)))]
        write_lines(path, (f"{source}\t{' '.join(targets)}" for source, targets in (*rows, *lines)))

    def candidates(self, pieces: Sequence[str]) -> frozenset[str]:
        """What the translation of a source may have, as CTranslate2 looks it up."""
        return self.always.union(*(self.by_source.get(ngram, ()) for ngram in self._ngrams(pieces)))

    def targets(self) -> Iterator[str]:
        """All target pieces, each maybe several times."""
        yield from self.always
        for targets in self.by_source.values():
            yield from targets

    def _ngrams(self, pieces: Sequence[str]) -> Iterable[str]:
        for length in range(1, min(self._longest, len(pieces)) + 1):
            for start in range(len(pieces) - length + 1):
                yield " ".join(pieces[start : start + length])

    @cached_property
    def _longest(self) -> int:
        """Pieces of the longest n-gram."""
        return max((ngram.count(" ") + 1 for ngram in self.by_source), default=1)
