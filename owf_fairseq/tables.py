"""Tables for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

Row = Sequence[str]


def text_table(header: Row, rows: Sequence[Row], left: int = 1) -> str:
    """An aligned table; the first ``left`` columns are words and start at the left, numbers end at the right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]

    def line(row: Row) -> str:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in (header, ["-" * width for width in widths], *rows))


def markdown_table(header: Row, rows: Sequence[Row], left: int = 1) -> str:
    """The same table in Markdown."""
    rule = ["---" if column < left else "---:" for column in range(len(header))]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, rule, *rows)
    )
