"""Whether a line of text shows anything.

White space, control characters and what Unicode tells programs to display as nothing (``Default_Ignorable_Code_Point``:
zero-width spaces and joiners, marks of direction, fillers, variation selectors) show nothing where they are alone.
Inside real text many of them matter, joiners in Persian or Hindi for example, and stay.
"""

from __future__ import annotations

import re

MARK = "\ufeff"
"""The byte order mark."""
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_MORE = "\u2800\ufff9-\ufffb"
"""A Braille cell without dots, and marks of annotations."""
_NOTHING = re.compile(f"[\\s\\x00-\\x1f\\x7f-\\x9f\u2581{_IGNORABLE}{_MORE}]*")
"""With SentencePiece's sign for a space."""


def is_blank(line: str) -> bool:
    """Whether a line shows nothing; one that shows something is known by its first characters."""
    return _NOTHING.fullmatch(line) is not None


def shown(line: str) -> str:
    """The text of a line: empty if it shows nothing, and without a byte order mark before it.

    Some programs put one before the first line; where files were joined, it stands before others.
    """
    return "" if is_blank(line) else line.removeprefix(MARK)
