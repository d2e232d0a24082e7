"""JSON that another command, or another hand, has written: read with the types that are expected, or refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owf_fairseq.errors import InputError

_LARGEST = 2**64
"""Of a number: the flags of a model have such as 2**63 - 1, for "no limit"."""


def read_object(path: Path) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        InputError: the file can't be read, or it holds something else, or numbers that no file of ours has: infinite
            ones, NaN, or such of many digits.
    """
    try:
        value = json.loads(
            path.read_text(encoding="utf-8"), parse_int=_whole, parse_float=_fraction, parse_constant=_no
        )
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} can't be read as JSON: {str(error) or type(error).__name__}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} can't be read: it holds a {type(value).__name__}, and not named values")
    return value


def wrong_types(found: Mapping[str, Any], wanted: Mapping[str, type]) -> list[str]:
    """The names of values that are not there, or that are of another type than they should be."""
    return [name for name, kind in wanted.items() if type(found.get(name)) is not kind]


Form = Any
"""What a value has to be: a type (``float`` takes whole numbers, too), a dictionary of entries and their forms, ``{...:
form}`` for entries of any name, ``[form]`` for a list, ``(form, ...)`` for one of several, None for null."""


def misfit(value: Any, form: Form, place: str = "") -> str | None:
    """Where a value differs from what it has to be, as in ``systems.0.name``; None if it fits."""
    if isinstance(form, tuple):
        places = [misfit(value, one, place) for one in form]
        return None if None in places else max((one for one in places if one), key=len)
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return place
        forms = dict.fromkeys(value, form[...]) if ... in form else form
        missing = next((name for name in forms if name not in value), None)
        if missing is not None:
            return f"{place}.{missing}"
        parts: list[tuple[Any, Any, Form]] = [(name, value[name], one) for name, one in forms.items()]
    elif isinstance(form, list):
        if not isinstance(value, list):
            return place
        parts = [(number, one, form[0]) for number, one in enumerate(value)]
    else:
        fits = value is None if form is None else type(value) in ((int, float) if form is float else (form,))
        return None if fits else place
    return next(
        (wrong for name, one, inner in parts if (wrong := misfit(one, inner, f"{place}.{name}")) is not None), None
    )


def is_plain_name(text: str) -> bool:
    """Whether a text names a file of a folder, and nothing outside it: it is no path."""
    return text not in ("", ".", "..") and not set(text) & set("/\\\0") and len(text.encode("utf-8", "replace")) < 200


def _whole(text: str) -> int:
    if len(text) > 20 or abs(int(text)) > _LARGEST:
        raise ValueError(f"the number {text[:20]}... has too many digits")
    return int(text)


def _fraction(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} is not a number that can be computed with")
    return float(text)


def _no(text: str) -> float:
    raise ValueError(f"{text} is not a number")
