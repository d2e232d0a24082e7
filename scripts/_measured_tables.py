"""Renderers of measured results, which are committed as JSON, as Markdown tables; see ``render_tables.py``."""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from owf_fairseq.tables import markdown_table, number

sys.path.append(str(Path(__file__).resolve().parent / "measure"))

Data = dict[str, Any]
FROM_JSON: dict[str, Callable[[Data], str]] = {}


def from_json(name: str) -> Callable:
    """Registers a renderer of a JSON file."""
    return lambda render: FROM_JSON.setdefault(name, render)


_NUMBER = re.compile(r"[-+±~<>]?\d[\d,.]*(e[-+]\d+)?( ?[%†‡]| [MGkK]B?| ± .*| of \d+| tokens)*")


def is_number(cell: str) -> bool:
    """Whether a cell of a table is a number, with a unit or not."""
    return _NUMBER.fullmatch(cell.strip("*` ")) is not None


@from_json("report")
def report_table(data: Data) -> str:
    """`owf report --only-ours --json`: our results, and the paper's beside them where there is a row."""
    from owf_fairseq.paper.report import report
    from owf_fairseq.paper.results import Ours, Results

    models = [Ours(**row["ours"]) for row in data["rows"] if row["ours"]]
    made = report(Results({model.name: model for model in models}), data["table"], only_ours=True)
    return markdown_table(made.header, made.rows, made.words)


@from_json("ratios")
def ratios_table(data: Data) -> str:
    """`scripts/measure/bench_training.py --json`."""
    rows = [[f"`{r['arch']}` to `{r['to']}`", f"{r['speed']:.2f}", f"{r['memory']:.2f}"] for r in data["ratios"]]
    return markdown_table(["training", "speed", "peak memory"], rows)


@from_json("cells")
def cells_table(data: Data) -> str:
    """Rows as objects whose values are the cells, as `scripts/measure/compare_exports.py --json` writes them."""
    rows = [list(row.values()) for row in data["rows"]]
    words = {index for index in range(len(rows[0])) if not any(is_number(row[index]) for row in rows)}
    return markdown_table(list(data["rows"][0]), rows, words)


@from_json("speeds")
def speeds(data: Data) -> str:
    """`owf benchmark --json`: every model in every setting."""
    from owf_fairseq.speed.report import speeds_table

    made = speeds_table({**data, "calibration": None})  # which only its notes are about
    return markdown_table(made.header, made.rows, made.words)


@from_json("like_for_like")
def like_for_like(data: Data) -> str:
    """`owf benchmark --unpacked NAME ... --json`: each model to the first that is decoded in the same way."""
    unpacked = data["settings"]["unpacked"]
    archs = {model["name"]: model["arch"] for model in data["models"]}
    packed_base = next(name for name in archs if name not in unpacked)
    found: dict[tuple[str, str], list[str]] = {}
    for entry in data["measurements"]:
        base = unpacked[0] if entry["name"] in unpacked else packed_base
        [first] = [one for one in data["measurements"] if (one["name"], one["lengths"]) == (base, entry["lengths"])]
        runs = zip(entry["tokens_per_s"]["by_run"], first["tokens_per_s"]["by_run"], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in runs)
        found.setdefault((entry["lengths"], archs[entry["name"]]), []).append(f"{ratio:.2f}")
    rows = [[*key, *cells] for key, cells in found.items()]
    return markdown_table(["source/target", "model", "ratio, as in fairseq", "ratio, packed"], rows, words=(0, 1))


@from_json("batch_sizes")
def batch_sizes(data: Data) -> str:
    """`owf benchmark --batch-sizes ... --json`: ours beside the table of the paper's appendix."""
    from owf_fairseq.cost_model.speed_tables import batch_size_table
    from owf_fairseq.paper.rows import batch_rows
    from owf_fairseq.tables import with_deviation

    made = batch_size_table(
        {model["name"]: model["baseline"] for model in data["models"]},
        data["measurements"],
        lambda entry: with_deviation(entry["tokens_per_s"]["mean"], entry["tokens_per_s"]["sd"]),
        lambda entry: entry["ratio"]["median"],
        data,
    )
    paper = {str(row.batch_size): f"{row.speed_up:+}" for row in batch_rows()}
    rows = [[*row, paper[row[1]]] for row in made.rows]
    return markdown_table([*made.header, "paper's GPU: speed-up, %"], rows, made.words)


def _exploration(name: str, place: int) -> None:
    @from_json(name)
    def render(data: Data) -> str:
        from owf_fairseq.explore.tables import workload_table

        made = workload_table(data, place)
        return markdown_table(made.header, made.rows, made.words)


for _place, _name in enumerate(("exploration", "exploration_second")):
    _exploration(_name, _place)


@from_json("curves")
def curves_table(data: Data) -> str:
    """`scripts/measure/warm_start.py`: validation losses by updates."""
    from warm_start import Curve, loss_table

    return loss_table(
        [Curve(curve["name"], {int(at): loss for at, loss in curve["loss"].items()}) for curve in data["curves"]]
    )


def _similarity(table: str, decimals: int) -> None:
    @from_json(f"similarity_{table}")
    def render(data: Data) -> str:
        from owf_fairseq.analysis.tables import COLUMNS, TITLES, WHOLE

        listed = data["tables"][table]
        with_paper = any(row["paper"] for row in listed)
        header, rows = ["model"], []
        for stack, metric in COLUMNS:
            header += [f"{stack} {TITLES[metric]}", "paper"][: 1 + with_paper]
        for row in listed:
            name = f"{row['paper_row']} ({row['model']})" if row["paper_row"] and row["role"] == "compared" else None
            cells = [name or row["model"]]
            for stack, metric in COLUMNS:
                mark = f" {WHOLE}" if stack in row["whole_layers"] else ""
                paper = row["paper"][f"{stack}_{metric}"] if row["paper"] else None
                cells += [number(row[f"{stack}_{metric}"], decimals) + mark, number(paper, decimals)][: 1 + with_paper]
            rows.append(cells)
        return markdown_table(header, rows)


for _table, _decimals in (("normalised", 1), ("raw", 2), ("layers", 2)):
    _similarity(_table, _decimals)


@from_json("similarity_redundancy")
def redundancy_table(data: Data) -> str:
    """`owf similarity --json`: how alike neighbouring components of a model are."""
    what = ("adjacent", "second", "difference")
    stacks = ("encoder", "decoder")
    rows = [
        [row["model"], *(number((row[stack] or {}).get(one), 3) for stack in stacks for one in what)]
        for row in data["tables"]["redundancy"]
    ]
    return markdown_table(["model", *(f"{stack} {one}" for stack in stacks for one in what)], rows)
