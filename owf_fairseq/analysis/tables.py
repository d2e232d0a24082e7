"""The paper's two tables of similarity, raw and normalised, from an analysis; and what it has beside them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from owf_fairseq.analysis.models import BASELINE, BENCHMARK, COMPARED, RANDOM
from owf_fairseq.analysis.representations import STACKS
from owf_fairseq.analysis.similarity import LAYERS, SIMILARITY_METRICS, summary_score
from owf_fairseq.paper.results import ConfigurationKey, Ours, configuration_key
from owf_fairseq.paper.rows import SIMILARITY_SLIPS, PaperSimilarity, similarity_rows
from owf_fairseq.tables import Report, number

WHOLE = "‡"
"""Marks scores of whole layers in a table of components."""

COLUMNS = [(stack, metric) for stack in STACKS for metric in SIMILARITY_METRICS]
NOTHING = "the two models have no corresponding components"
TITLES = {"cka": "CKA", "lns": "LNS"}
Cell = tuple[float, bool] | None
"""A value, and whether it is of whole layers."""


HEADINGS = {
    "normalised": "Similarity to {}, normalised: 100 is the benchmark's mean",
    "raw": "Similarity to {}, raw",
    "layers": "Similarity to {}, whole layers of all models, raw",
    "redundancy": "Redundancy: CKA of adjacent components, of second neighbours, and the difference",
}
"""Of the tables, with a place for the baseline's name."""


def similarity_tables(data: Mapping[str, Any]) -> dict[str, Report]:
    """The tables, by the names of ``HEADINGS``; without benchmarks there is no normalised one.

    Args:
        data: as ``similarity.analyse`` returns it.
    """
    raw = [(model, [_cell(model, *column) for column in COLUMNS]) for model in _in_order(data)]
    whole = [(model, [_cell(model, *column, LAYERS) for column in COLUMNS]) for model in _in_order(data)]
    normalised = {"normalised": _normalised(data, raw)} if _benchmarks(data) else {}
    return {
        **normalised,
        "raw": _report(data, "raw", raw, 2),
        "layers": _report(data, "layers", whole, 2),
        "redundancy": _redundancy(data),
    }


def with_headings(data: Mapping[str, Any], made: Mapping[str, Report]) -> Iterator[tuple[str, Report]]:
    """The tables with their headings."""
    for name, report in made.items():
        yield HEADINGS[name].format(data["models"][0]["name"]), report


def _in_order(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The models that are compared: seeds, others, random weights."""
    return [model for role in (BENCHMARK, COMPARED, RANDOM) for model in data["models"] if model["role"] == role]


def _benchmarks(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [model for model in data["models"] if model["role"] == BENCHMARK]


def _cell(model: Mapping[str, Any], stack: str, metric: str, of: str | None = None) -> Cell:
    found = summary_score(model["stacks"][stack], metric, of)
    return None if found is None else (found[1], of is None and found[0] == LAYERS)


Rows = Sequence[tuple[Mapping[str, Any], Sequence[Cell]]]


def _normalised(data: Mapping[str, Any], raw: Rows) -> Report:
    """100 x a score / the benchmarks' mean score (paper, "Similarity to Baseline"), of layers where it is of layers."""
    seeds = _benchmarks(data)

    def mean(stack: str, metric: str, of: str | None) -> float | None:
        found = [summary_score(model["stacks"][stack], metric, of) for model in seeds]
        return _mean([one[1] for one in found if one is not None])

    def normalise(cell: Cell, stack: str, metric: str) -> Cell:
        whole = mean(stack, metric, LAYERS if cell and cell[1] else None)
        return None if cell is None or not whole else (100 * cell[0] / whole, cell[1])

    rows = [
        (model, [normalise(cell, *column) for cell, column in zip(cells, COLUMNS, strict=True)])
        for model, cells in raw
        if model["role"] != BENCHMARK
    ]
    benchmark = {"name": f"benchmark ({', '.join(model['name'] for model in seeds)})", "role": BENCHMARK}
    hundreds = [(100.0, False) if mean(*column, None) else None for column in COLUMNS]
    return _report(data, "normalised", [(benchmark, hundreds), *rows], 1)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _report(data: Mapping[str, Any], table: str, rows: Rows, decimals: int) -> Report:
    papers = _paper_rows(data, table, rows)
    header, body = ["model"], [[_label(model, paper)] for (model, _), paper in zip(rows, papers, strict=True)]
    for number_of, (stack, metric) in enumerate(COLUMNS):
        header.append(f"{stack} {TITLES[metric]}")
        for line, (_, cells) in zip(body, rows, strict=True):
            line.append(_text(cells[number_of], decimals))
        if any(papers):
            header.append("paper")
            for line, paper in zip(body, papers, strict=True):
                line.append(number(paper.values[f"{stack}_{metric}"] if paper else None, decimals))
    listed = [
        {
            "model": model["name"],
            "role": model["role"],
            "paper_row": paper and paper.row,
            **{f"{stack}_{metric}": cell and cell[0] for (stack, metric), cell in zip(COLUMNS, cells, strict=True)},
            "whole_layers": list(
                dict.fromkeys(of[0] for of, cell in zip(COLUMNS, cells, strict=True) if cell and cell[1])
            ),
            "paper": paper and paper.values,
        }
        for (model, cells), paper in zip(rows, papers, strict=True)
    ]
    return Report(header, body, listed, _notes(data, table, rows, papers))


def _text(cell: Cell, decimals: int) -> str:
    return "-" if cell is None else number(cell[0], decimals) + (f" {WHOLE}" if cell[1] else "")


def _label(model: Mapping[str, Any], paper: PaperSimilarity | None) -> str:
    return model["name"] if paper is None or model["role"] == BENCHMARK else f"{paper.row} ({model['name']})"


def _paper_rows(data: Mapping[str, Any], table: str, rows: Rows) -> list[PaperSimilarity | None]:
    """The paper's row of each model: that of its configuration and width; the benchmarks' in turn.

    There is none where the baseline is not the individual encoder-decoder model, which it is in the paper.
    """
    left = [row for row in similarity_rows() if row.table == table]
    if _key(data["models"][0]) != INDIVIDUAL:
        left = []
    found: list[PaperSimilarity | None] = []
    for model, _ in rows:
        key = INDIVIDUAL if model["role"] == BENCHMARK else _key(model) if model["role"] == COMPARED else None
        # another individual model is no seed of the baseline: it may have been trained in any way
        if model["role"] == COMPARED and key == INDIVIDUAL:
            key = None
        match = next((row for row in left if key == _paper_key(row)), None)
        if match is not None:
            left.remove(match)
        found.append(match)
    return found


def _paper_key(row: PaperSimilarity) -> ConfigurationKey:
    return configuration_key("big", row.configuration, row.shared_ffn_dim)


INDIVIDUAL = configuration_key("big", "individual", None)


def _key(model: Mapping[str, Any]) -> ConfigurationKey | None:
    ours = Ours(model["name"])
    ours.learn(model)
    return ours.key


def _slips(paper: PaperSimilarity) -> bool:
    return any(row == paper.row for row, _ in SIMILARITY_SLIPS)


def _notes(data: Mapping[str, Any], table: str, rows: Rows, papers: Sequence[PaperSimilarity | None]) -> list[str]:
    settings, files = data["settings"], data["files"]
    of = "layers" if table == "layers" else "components"
    notes = [
        f"mean over corresponding {of}, {files['sentences']:,} sentences, capture: {settings['capture']}, "
        f"end-of-sentence symbols {'counted' if settings['eos'] else 'left out'}, k = {settings['k']}"
        + (", debiased CKA" if settings["debiased"] else "")
    ]
    if any(cell and cell[1] for _, cells in rows for cell in cells):
        notes.append(
            f"{WHOLE}: whole layers, because the modules of the two models differ"
            + (
                ", relative to the benchmark's whole layers"
                if table == "normalised"
                else "; the benchmark's are in the table of whole layers"
            )
        )
    if any(cell is None for _, cells in rows for cell in cells):
        notes.append(f"-: {NOTHING}")
    if any(papers):
        notes.append("paper: Pires et al. 2023, arXiv:2309.01826, as printed, Transformer Big on WMT22 English-German")
    slips = [paper.row for paper in papers if paper and table == "normalised" and _slips(paper)]
    if slips:
        notes.append(f"the paper's encoder LNS of {', '.join(slips)} does not follow from its raw table")
    if not _benchmarks(data):
        notes.append("without `--benchmark`, the baseline with other seeds, nothing says how high a score can be")
    return [f"- {note}" for note in notes]


def _redundancy(data: Mapping[str, Any]) -> Report:
    """Of every model with itself."""
    header = ["model", *(f"{stack} {what}" for stack in STACKS for what in ("adjacent", "second", "difference"))]
    body, listed = [], []
    for role in (BASELINE, BENCHMARK, COMPARED, RANDOM):
        for model in (model for model in data["models"] if model["role"] == role):
            found = {stack: model["stacks"][stack]["redundancy"] for stack in STACKS}
            values = [
                value
                for stack in STACKS
                for value in (found[stack] or dict.fromkeys(("adjacent", "second", "difference"))).values()
            ]
            body.append([model["name"], *(number(value, 3) for value in values)])
            listed.append({"model": model["name"], "role": role, **found})
    return Report(
        header,
        body,
        listed,
        [
            "- a model with itself, components in the order of the computation, capture: "
            f"{data['settings']['capture']}; a negative difference shows as a checkerboard",
            "- second neighbours are of one kind (0.sa, 1.sa) where a layer has two components, of two where three",
        ],
    )
