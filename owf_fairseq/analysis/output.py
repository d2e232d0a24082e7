"""What an analysis leaves: a folder with JSON for programs, and Markdown and pictures for people."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from typing import Any

from owf_fairseq.analysis.tables import with_headings
from owf_fairseq.files.folders import output_folder
from owf_fairseq.files.lines import PathLike, write_lines
from owf_fairseq.tables import Report

COMMAND = "owf similarity"
JSON, TABLES = "similarity.json", "tables.md"


def check_plots(folder: PathLike | None, plots: bool) -> list[str]:
    """What forbids to draw the pictures in the folder, a sentence."""
    if folder is None or not plots or importlib.util.find_spec("matplotlib") is not None:
        return []
    return ["the pictures of `--output` need matplotlib: `pip install '.[plot]'`, or leave them out with `--no-plots`"]


def as_json(data: Mapping[str, Any], tables: Mapping[str, Report]) -> str:
    """Everything: the matrices, and the tables as rows."""
    return json.dumps(
        {**data, "tables": {name: report.data for name, report in tables.items()}}, indent=1, allow_nan=False
    )


def write_folder(
    path: PathLike,
    data: Mapping[str, Any],
    tables: Mapping[str, Report],
    plots: bool = True,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Writes JSON, tables and pictures.

    Args:
        path: the folder.
        data: as ``similarity.analyse`` returns it.
        tables: see ``tables.tables``.
        plots: whether to draw.
        record: see ``output_folder``.

    Raises:
        InputError: the folder holds something else.
        ImportError: matplotlib is missing.
    """
    with output_folder(path, COMMAND, record) as folder:
        write_lines(folder / JSON, as_json(data, tables).split("\n"))
        lines = []
        for heading, report in with_headings(data, tables):
            lines += [f"## {heading}", "", *report.as_markdown().split("\n"), ""]
        if plots:
            from owf_fairseq.analysis.plots import draw

            lines += ["## Pictures", ""]
            for name in draw(data, folder):
                lines += [f"![{name}]({name}.png)", ""]
        write_lines(folder / TABLES, lines[:-1])
