"""What is known of languages by their codes: one place for all that cut, join or count words."""

from __future__ import annotations

import re

_SHORT = dict(
    pair.split(":")
    for pair in (
        "eng:en deu:de ron:ro fra:fr spa:es ita:it por:pt "
        "zho:zh cmn:zh chi:zh jpn:ja kor:ko tha:th lao:lo khm:km mya:my bod:bo"
    ).split()
)

_WITHOUT_SPACES = frozenset("bo ja km lo my th yue zh".split())


def short_code(lang: str) -> str:
    """A language's code without region or script, and of two letters where it has such: ``zh`` of ``zho_Hans``."""
    code = re.split("[-_]", lang)[0].lower()
    return _SHORT.get(code, code)


def has_spaces(lang: str) -> bool:
    """Whether words are written with spaces between them."""
    return short_code(lang) not in _WITHOUT_SPACES
