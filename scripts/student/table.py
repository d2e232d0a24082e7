"""Puts scores and speeds of teacher and students into one table, and draws speed against BLEU; see scripts/distill.sh.

example:
  python scripts/student/table.py scores.json speed_beam_5.json speed_beam_1.json --output student

Models are named TEXT.STUDENT.TYPE or TEXT.STUDENT.TYPE.shortlist: TEXT is what a student learned from, distilled or
original, and TYPE that of the exported weights; the teacher is teacher.TYPE. Writes PREFIX.json, PREFIX.md, PREFIX.png.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from owf_fairseq.checkpoints.naming import configuration_label
from owf_fairseq.errors import InputError
from owf_fairseq.files.json_object import read_object
from owf_fairseq.files.outputs import output_file, write_output
from owf_fairseq.tables import joined_numbers, markdown_table, number

MADE_BY = "bash scripts/distill.sh --original"
TEXTS = ("distilled", "original")
METRICS = {"bleu": "BLEU", "chrf": "chrF"}

Row = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    """Reads, joins and writes.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path, metavar="SCORES", help="of `owf evaluate --json`")
    parser.add_argument("speeds", type=Path, nargs="+", metavar="SPEEDS", help="of `owf benchmark --input --json`")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="of the three files")
    args = parser.parse_args(argv)
    try:
        rows = joined(read_object(args.scores), [read_object(path) for path in args.speeds])
        cells = [shown(row) for row in rows]
        table = markdown_table(list(cells[0]), [list(row.values()) for row in cells], words=range(3))
        document = {"made_by": MADE_BY, "rows": cells}
        write_output("--output", f"{args.output}.json", json.dumps(document, indent=1, ensure_ascii=False).split("\n"))
        write_output("--output", f"{args.output}.md", table.split("\n"))
        draw(rows, f"{args.output}.png")
    except InputError as error:
        for problem in error.problems:
            print(f"table.py: error: {problem}", file=sys.stderr)
        return 2
    print(table)
    return 0


def joined(scores: dict[str, Any], speeds: list[dict[str, Any]]) -> list[Row]:
    """A row for each way to serve each model.

    Args:
        scores: of all models.
        speeds: of those whose speed was measured, which have a row; in each the same.

    Returns:
        For each model its label, weights, shortlist, scores by text and metric, speeds by what was measured, megabytes.
    """
    by_name = {system["name"]: system["scores"] for system in scores["systems"]}
    rows: dict[str, Row] = {}
    for data in speeds:
        for model in data["models"]:
            kind, _, rest = model["name"].partition(".")
            student, _, served = rest.partition(".") if kind in TEXTS else ("", "", rest)
            weights, _, shortlist = served.partition(".")
            label = configuration_label(model["configuration"], model["arch"])
            width = model["ffn_dims"]["encoder"]
            row = rows.setdefault(model["name"], {"speeds": {}, "scores": {}})
            row |= {"model": f"{label}, d_ff {joined_numbers(width)}" if student else "teacher", "weights": weights}
            row |= {"shortlist": bool(shortlist), "mb": model["folder_mb"]}
            for text in TEXTS:
                name = f"{text}.{rest}" if student else model["name"] if text == "original" else None
                row["scores"][text] = {metric: entry["score"] for metric, entry in by_name.get(name, {}).items()}
        for entry in data["measurements"]:
            how = "greedy" if data["settings"]["beam"] == 1 else f"beam {data['settings']['beam']}"
            speed = entry["words_per_s"]
            rows[entry["name"]]["speeds"][f"{how}, batch {entry['batch_size']}"] = speed and speed["mean"]
    return list(rows.values())


def shown(row: Row) -> dict[str, str]:
    """The cells of a row, by their column."""
    cells = {"model": row["model"], "weights": row["weights"], "shortlist": "yes" if row["shortlist"] else "no"}
    for text in TEXTS:
        for metric, title in METRICS.items():
            cells[f"{title}, {text} text"] = number(row["scores"][text].get(metric), 1)
    for how, speed in row["speeds"].items():
        cells[f"words/s, {how}"] = number(speed)
    return {**cells, "MB": number(row["mb"], 1)}


def draw(rows: list[Row], path: str) -> None:
    """Speed, in the first way that was measured, against BLEU, one point for each row."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every font
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(8, 5), layout="constrained")
    axis = figure.subplots()
    models = list(dict.fromkeys(row["model"] for row in rows))
    for row in rows:
        how, speed = next(iter(row["speeds"].items()))
        score = row["scores"]["distilled"] or row["scores"]["original"]
        axis.plot(
            speed,
            score["bleu"],
            color=f"C{models.index(row['model'])}",
            marker="D" if row["shortlist"] else "o",
            fillstyle="full" if row["weights"] == "int8" else "none",
            markersize=9,
        )
    axis.set_xlabel(f"words of source text a second, one thread, {how}")
    axis.set_ylabel("BLEU")
    axis.grid(alpha=0.3)
    signs = {"float32": ("o", "none"), "int8": ("o", "full"), "float32, shortlist": ("D", "none")}
    signs |= {"int8, shortlist": ("D", "full")}
    handles = [Line2D([], [], color=f"C{n}", linewidth=4, label=model) for n, model in enumerate(models)]
    for label, (marker, fill) in signs.items():
        handles.append(Line2D([], [], color="grey", linestyle="", marker=marker, fillstyle=fill, label=label))
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    with output_file("--output", path) as place:
        figure.savefig(place, format="png", dpi=150)


if __name__ == "__main__":
    raise SystemExit(main())
