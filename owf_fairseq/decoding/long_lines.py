"""A line that is longer than a model takes, cut where sentences end, or else where words do."""

from __future__ import annotations

import re
from collections.abc import Callable

# after the end of a sentence, with closing quotes and brackets; languages that write no spaces have their own signs
_SENTENCE_ENDS = re.compile(
    r"""(?:(?<=[.!?;…])|(?<=[.!?;…]["'”’»)\]]))\s+|(?<=[。！？；])(?![。！？；」』）])|(?<=[。！？][」』）])"""
)


def split_to_fit(text: str, length: Callable[[str], int], limit: int) -> list[str]:
    """Cuts a text into parts that fit.

    Every sentence is a part, because models are trained on sentences; one that is too long itself is cut between words
    into as few parts as fit, and a word that is too long between characters.

    Args:
        text: to cut.
        length: how long a text is, in pieces.
        limit: the most pieces of a part.

    Returns:
        The parts, in order; together they are the text, up to white space between them.
    """
    if length(text) <= limit:
        return [text]
    starts = [0, *(found.end() for found in _SENTENCE_ENDS.finditer(text))]
    sentences = [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [part for sentence in sentences if sentence for part in _split_words(sentence, length, limit)]


def _split_words(sentence: str, length: Callable[[str], int], limit: int) -> list[str]:
    if length(sentence) <= limit:
        return [sentence]
    parts: list[str] = []
    held = ""
    for word in sentence.split():
        longer = f"{held} {word}" if held else word
        if length(longer) <= limit:
            held = longer
            continue
        parts += [held] if held else []
        *full, held = _split_characters(word, length, limit)
        parts += full
    return [*parts, held]


def _split_characters(word: str, length: Callable[[str], int], limit: int) -> list[str]:
    parts = []
    start = 0
    while start < len(word):
        # the longest start that fits; a single character is taken in any case, so that this ends. It is looked for from
        # the short side: measuring all that is left for each part would take the square of the time
        fits, too_long = start + 1, start + 2
        while too_long <= len(word) and length(word[start:too_long]) <= limit:
            fits, too_long = too_long, 2 * too_long - start
        too_long = min(too_long, len(word) + 1)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            fits, too_long = (middle, too_long) if length(word[start:middle]) <= limit else (fits, middle)
        parts.append(word[start:fits])
        start = fits
    return parts
