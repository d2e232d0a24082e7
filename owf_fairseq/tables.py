"""Tables for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Row = Sequence[str]


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
