"""Reports: tables for the terminal and for Markdown, the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

Row = Sequence[str]

DAGGER = "†"
"""Behind a score that differs significantly from the baseline's, as in the paper."""


@dataclass(frozen=True)
class Report:
    """What a subcommand prints.

    Attributes:
        header, rows: of the table.
        data: for JSON.
        notes: sentences under the table.
        words: the columns that are no numbers, by index.
    """

    header: Row
    rows: Sequence[Row]
    data: Any
    notes: Sequence[str] = ()
    words: Collection[int] = (0,)

    def as_text(self) -> str:
        """For the terminal."""
        return "\n".join([text_table(self.header, self.rows, self.words), *self._notes()])

    def as_markdown(self) -> str:
        """For a document."""
        return "\n".join([markdown_table(self.header, self.rows, self.words), *self._notes()])

    def as_json(self) -> str:
        """For another program."""
        return json.dumps(self.data, indent=2)

    def _notes(self) -> list[str]:
        return ["", *self.notes] if self.notes else []


def number(value: float | None, decimals: int = 0) -> str:
    """A number as a cell, ``-`` for none."""
    return "-" if value is None else f"{value:,.{decimals}f}"


def numbers(values: int | list[int] | None) -> str:
    """A number, or several with spaces between them, as a cell; ``-`` for none."""
    return " ".join(map(number, values)) if isinstance(values, list) else number(values)


def with_deviation(mean: float, deviation: float | None, decimals: int = 1) -> str:
    """``110.8 ± 1.2`` as a cell; without the deviation where there is none, as of a single run."""
    return number(mean, decimals) + ("" if deviation is None else f" ± {number(deviation, decimals)}")


def text_table(header: Row, rows: Sequence[Row], words: Collection[int] = (0,)) -> str:
    """An aligned table; columns of ``words``, by index, start at the left, numbers end at the right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]

    def line(row: Row) -> str:
        cells = [
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in (header, ["-" * width for width in widths], *rows))


def markdown_table(header: Row, rows: Sequence[Row], words: Collection[int] = (0,)) -> str:
    """The same table in Markdown."""
    rule = ["---" if column in words else "---:" for column in range(len(header))]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, rule, *rows)
    )
