"""What looks wrong with the texts of an evaluation, although it can be scored: each a warning of one line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.files.visible import is_blank
from owf_fairseq.scoring.inputs import TestSet, TextFile

_SAME_AS_REFERENCE = 0.9
"""Share of the lines from which on hypotheses are thought to be a reference."""
_SAME_AS_SOURCE = 0.2
"""The same for lines that are left untranslated; systems and people copy 2 to 5 % of news, such as names and titles."""
_CLOSER, _CLOSER_BY = 1.5, 10.0
"""How many times and by how much the chrF with the source is above that with the references, where they are swapped.
WMT22's German outputs have 24 with the source and 63 with a reference."""
_APART = 35.0
"""chrF of the source and a reference from which on their languages share too much text to tell (Spanish and Portuguese
have 38 in NTREX, Italian and Spanish 32, English and German 25)."""
_DRAWN = 200
"""Lines that are compared so, evenly drawn: a tenth of a second for a system."""
_SHOWN = 5


@dataclass(frozen=True)
class _Mark:
    """What a text should not have.

    Attributes:
        text: what it is.
        pattern: where it stands.
        usual: share of lines up to which plain text has it too.
        advice: what to do.
    """

    text: str
    pattern: re.Pattern[str]
    usual: float
    advice: str


_MARKS = (
    _Mark(
        "a space before a full stop or a comma",
        re.compile(r"\w [.,](?:\s|$)"),
        0.05,
        "detokenise: scores are defined on plain text",
    ),
    _Mark(
        "marks of subword pieces (`@@ ` or `▁`)",
        re.compile(r"@@(?:\s|$)|▁"),
        0.0,
        "join the pieces: scores are defined on plain text",
    ),
    _Mark(
        "marks of Moses' tokeniser (`@-@`, `&apos;`, `&quot;`)",
        re.compile(r" @-@ |&(?:apos|quot|#91|#93|#124);"),
        0.01,
        "detokenise: scores are defined on plain text",
    ),
    _Mark(
        "unknown words (`<unk>` or `⁇`)",
        re.compile(r"<unk>|⁇"),
        0.0,
        "the system's vocabulary lacks characters of the text; every metric counts the mark as wrong",
    ),
)


def find_warnings(test_set: TestSet, tokenizer: str | None = None) -> list[str]:
    """Looks for what users mix up.

    Args:
        test_set: all of its texts.
        tokenizer: BLEU's, None if there is no BLEU.

    Returns:
        The warnings, each with the file, and the lines or their share.
    """
    references, hypotheses = test_set.references, list(test_set.hypotheses.values())
    closer_to_source = [*_closer_to_source(test_set.source, references, hypotheses)]
    return [
        *_swapped(references, hypotheses),
        *closer_to_source,
        *_source(test_set.source, references, [] if closer_to_source else hypotheses),
        *_twice(hypotheses),
        *(warning for text in references for warning in _empty(text, "a hypothesis can only lose there")),
        *(warning for text in hypotheses for warning in _empty(text, "they count as wrong")),
        *(warning for mark in _MARKS for warning in _marked(mark, references, hypotheses)),
        *(_without_spaces(references) if tokenizer == "13a" else ()),
    ]


def _swapped(references: Sequence[TextFile], hypotheses: Sequence[TextFile]) -> Iterator[str]:
    for hypothesis in hypotheses:
        for reference in references:
            share = _share(one == other for one, other in zip(hypothesis.lines, reference.lines, strict=True))
            if share >= _SAME_AS_REFERENCE:
                yield (
                    f"{hypothesis.file}: {share:.0%} of the lines are those of the reference {reference.file}: is a "
                    "reference given as a hypothesis?"
                )
    named_reference = [text.file for text in hypotheses if _named(text, "ref", "reference")]
    named_hypothesis = [text.file for text in references if _named(text, "hyp", "hyps", "hypothesis", "sys", "out")]
    if named_reference and named_hypothesis:
        yield (
            f"{', '.join(named_hypothesis)} is given as the reference, {', '.join(named_reference)} as a hypothesis: "
            "are they swapped?"
        )


def _named(text: TextFile, *words: str) -> bool:
    return not {*words}.isdisjoint(re.split(r"[._-]", Path(text.file).name.lower()))


def _closer_to_source(
    source: TextFile | None, references: Sequence[TextFile], hypotheses: Sequence[TextFile]
) -> Iterator[str]:
    """All hypotheses in the language of the source, measured on some lines."""
    if source is None or not references:
        return
    from sacrebleu.metrics import CHRF

    chrf, lines = CHRF(), _with_words(source)
    number = min(_DRAWN, len(lines))
    drawn = [lines[place * len(lines) // number] for place in range(number)]

    def likeness(text: TextFile, others: Sequence[TextFile]) -> float:
        picked = [[one.lines[line] for line in drawn] for one in (text, *others)]
        return max(chrf.corpus_score(picked[0], [other]).score for other in picked[1:])

    if not drawn or likeness(source, references) >= _APART:
        return
    found = []
    for text in hypotheses:
        to_source, to_references = likeness(text, [source]), likeness(text, references)
        if to_source < max(_CLOSER * to_references, to_references + _CLOSER_BY):
            return
        found.append((to_source, to_references))
    with_source, with_references = zip(*found, strict=True)
    yield (
        f"{', '.join(text.file for text in hypotheses)}: much closer to the source {source.file} (chrF "
        f"{min(with_source):.0f}) than to {', '.join(text.file for text in references)} ({max(with_references):.0f}): "
        "it looks as if `--src` and `--ref` are swapped, or nothing was translated"
    )


def _with_words(text: TextFile) -> list[int]:
    """The lines that are more than a number, which is the same in every language."""
    return [line for line, words in enumerate(text.lines) if sum(map(str.isalpha, words)) >= 4]


def _source(source: TextFile | None, references: Sequence[TextFile], hypotheses: Sequence[TextFile]) -> Iterator[str]:
    """Texts in the source language."""
    if source is None:
        return
    with_words = _with_words(source)
    for texts, what in ((references, "the reference"), (hypotheses, "a hypothesis")):
        for text in texts:
            share = _share(text.lines[line].strip() == source.lines[line].strip() for line in with_words)
            if share >= _SAME_AS_SOURCE:
                yield (
                    f"{text.file}: {share:.0%} of the lines are those of the source {source.file}: is that the file to "
                    f"give as {what}, or was it not translated?"
                )


def _twice(hypotheses: Sequence[TextFile]) -> Iterator[str]:
    for number, one in enumerate(hypotheses):
        for other in hypotheses[:number]:
            if one.lines == other.lines:
                yield f"{other.file} and {one.file} have the same lines: is one of them the wrong file?"


def _empty(text: TextFile, what_then: str) -> Iterator[str]:
    lines = [number for number, line in enumerate(text.lines, 1) if is_blank(line)]
    if lines:
        yield f"{text.file}: nothing in {_some(lines, text)}: {what_then}"


def _marked(mark: _Mark, references: Sequence[TextFile], hypotheses: Sequence[TextFile]) -> Iterator[str]:
    """Texts with marks; hypotheses if they have more than the references, as the source may call for some."""
    found = {
        text.file: [number for number, line in enumerate(text.lines, 1) if mark.pattern.search(line)]
        for text in (*references, *hypotheses)
    }
    shares = {text.file: len(found[text.file]) / len(text.lines) for text in (*references, *hypotheses)}
    in_references = max((shares[text.file] for text in references), default=0.0)
    in_hypotheses = max(shares[text.file] for text in hypotheses)
    for text in references:
        if shares[text.file] > mark.usual:
            advice = "a reference must be plain text"
            if shares[text.file] > 2 * in_hypotheses:
                advice = "the hypotheses have hardly any: are the reference and a hypothesis swapped?"
            yield f"{text.file}: {mark.text} in {_some(found[text.file], text)}: {advice}"
    for text in hypotheses:
        if shares[text.file] > max(mark.usual, 2 * in_references):
            yield f"{text.file}: {mark.text} in {_some(found[text.file], text)}: {mark.advice}"


def _without_spaces(references: Sequence[TextFile]) -> Iterator[str]:
    for text in references:
        letters = [letter for line in text.lines[:200] for letter in line if letter.isalpha()]
        share = _share(
            unicodedata.name(letter, "").startswith(("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"))
            for letter in letters
        )
        if share > 0.5:
            yield (
                f"{text.file} looks like text without spaces between words, which BLEU's tokenizer 13a takes for long "
                "words: name the language, as in `--target-lang zh`"
            )


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _some(numbers: Sequence[int], text: TextFile) -> str:
    """How many lines of a text, and which, as far as they fit into a line."""
    shown = ", ".join(f"{number:,}" for number in numbers[:_SHOWN]) + (", ..." if len(numbers) > _SHOWN else "")
    return f"{len(numbers):,} of {len(text.lines):,} lines ({shown})"
