"""What an analysis leaves: a folder with JSON for programs, and Markdown and pictures for people."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from typing import Any

from owf_fairseq.analysis.similarity import SIMILARITY_KIND
from owf_fairseq.analysis.tables import with_headings
from owf_fairseq.files.folders import check_output, output_folder
from owf_fairseq.files.lines import PathLike, write_lines
from owf_fairseq.files.outputs import check_output_file
from owf_fairseq.model_names import split_name
from owf_fairseq.tables import Report

COMMAND = "owf similarity"
JSON, TABLES = "similarity.json", "tables.md"


def check_analysis_files(
    checkpoints: Sequence[str],
    texts: Sequence[str],
    folder: PathLike | None,
    json_file: PathLike | None,
    overwrite: bool,
    plots: bool,
    kind: str = SIMILARITY_KIND,
) -> list[str]:
    """What forbids to write the files, a sentence each.

    Args:
        checkpoints, texts: what is read, as typed.
        folder, json_file: what is to be written; None for nothing.
        overwrite: whether a file of another command may be replaced.
        plots: whether there will be pictures in the folder.
        kind: of the JSON.
    """
    problems = [] if folder is None else check_output(folder, COMMAND)
    inputs = [*(split_name(word)[1] for word in checkpoints), *texts]
    problems += check_output_file("--json", json_file, overwrite, kind=kind, inputs=inputs)
    if folder is not None and plots and importlib.util.find_spec("matplotlib") is None:
        problems.append(
            "the pictures of `--output` need matplotlib: `pip install '.[plot]'`, or leave them away with `--no-plots`"
        )
    return problems


def as_json(data: Mapping[str, Any], tables: Mapping[str, Report]) -> str:
    """Everything: the matrices, and the tables as rows."""
    return json.dumps(
        {**data, "tables": {name: report.data for name, report in tables.items()}}, indent=1, allow_nan=False
    )


def write_folder(path: PathLike, data: Mapping[str, Any], tables: Mapping[str, Report], plots: bool = True) -> None:
    """Writes JSON, tables and pictures.

    Args:
        path: the folder.
        data: as ``similarity.analyse`` returns it.
        tables: see ``tables.tables``.
        plots: whether to draw.

    Raises:
        InputError: the folder holds something else.
        ImportError: matplotlib is missing.
    """
    with output_folder(path, COMMAND) as folder:
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
