"""Our results in the shape of the paper's tables, the paper's numbers beside them.

Each model stands in the row of the paper that has its configuration and width.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from owf_fairseq.baselines import individual_models
from owf_fairseq.errors import InputError
from owf_fairseq.paper.comparisons import about_baselines, about_speeds, compare, ratios
from owf_fairseq.paper.results import ConfigurationKey, Ours, Results, configuration_key
from owf_fairseq.paper.rows import BATCH_SIZES_TABLE, VOCAB_SIZES, PaperRow, batch_rows, rows, rows_of_table
from owf_fairseq.tables import DAGGER, Report, number, with_deviation

METRIC_TITLES = {"bleu": "BLEU", "spbleu": "spBLEU", "chrf": "chrF", "comet": "COMET"}
"""In the order of the paper's columns. What it calls BLEU is spBLEU for the ten languages."""

PAIRS = tuple(VOCAB_SIZES)
"""The paper's data."""

REPORT_KIND = "report"
"""What the JSON says that it is."""

PRINTED = "paper: as printed in Pires et al. 2023, arXiv:2309.01826"


def tables_of_the_paper() -> list[str]:
    """The names that ``report`` knows."""
    return [*dict.fromkeys(row.table for row in rows()), BATCH_SIZES_TABLE]


def report(results: Results, table: str, only_ours: bool = False, pair: str = PAIRS[0]) -> Report:
    """A table of the paper with ours beside it.

    Args:
        results: ours.
        table: one of ``tables_of_the_paper``.
        only_ours: leave out rows and columns without a number of ours.
        pair: one of ``PAIRS``, whose rows ours belong to.

    Raises:
        InputError: the results are not for this table.
    """
    if table == BATCH_SIZES_TABLE:
        return batch_size_report(results, only_ours)
    of_paper = rows_of_table(table)
    left = dict(results.models)
    pairs: list[tuple[PaperRow | None, Ours | None]] = []
    for row in of_paper:
        found = _match(row, of_paper, left) if row.pair == pair or len({one.pair for one in of_paper}) == 1 else None
        pairs.append((row, left.pop(found.name) if found else None))
    models, notes = compare(results, [model.name for _, model in pairs if model])
    pairs = [(row, models[model.name] if model else None) for row, model in pairs]
    pairs += [(None, models[name]) for name in left]
    if only_ours:
        pairs = [(row, model) for row, model in pairs if model]
    columns = [
        (title, cells)
        for title, cells in _columns(pairs, models)
        if any(ours or (paper and not only_ours) for ours, paper in cells)
    ]
    header, body = ["model"], [[_label(row, model, of_paper)] for row, model in pairs]
    for title, cells in columns:
        shown = 2 if any(theirs for _, theirs in cells) else 1
        header += [title, "paper"][:shown]
        for line, both in zip(body, cells, strict=True):
            line += [cell or "-" for cell in both[:shown]]
    data = {
        "kind": REPORT_KIND,
        "table": table,
        "rows": [
            {"paper": row and vars(row) | {"slip": str(row.slip or "")}, "ours": model and vars(model)}
            for row, model in pairs
        ],
    }
    slips = [f"{row.row}: {row.slip}" for row, _ in pairs if row and row.slip]
    speeds = [f"tokens/s at batch size 1: {note}" for note in about_speeds(results.benchmarks)]
    notes = [PRINTED, *notes, *speeds, *about_baselines(models), *_sizes(pairs), *_vocabularies(pairs), *slips]
    return Report(header, body, data, [f"- {note}" for note in notes])


def _match(row: PaperRow, of_paper: Sequence[PaperRow], ours: Mapping[str, Ours]) -> Ours | None:
    """Our model of a row. Where the table has one size, that of ours may be another."""
    sizes = {(one.size, one.pair) for one in of_paper}
    for model in ours.values():
        same_size = model.size == row.size if len(sizes) > 1 else True
        if same_size and model.key == _paper_key(row):
            return model
    return None


def _paper_key(row: PaperRow) -> ConfigurationKey:
    return configuration_key(row.size, row.configuration, row.shared_ffn_dim)


Cells = list[tuple[str, str]]
"""For each row ours and the paper's."""


def _columns(
    pairs: Sequence[tuple[PaperRow | None, Ours | None]], models: Mapping[str, Ours]
) -> list[tuple[str, Cells]]:
    columns: list[tuple[str, Cells]] = []
    for metric, title in METRIC_TITLES.items():
        columns.append((title, [(_score(model, metric), _paper_score(row, metric)) for row, model in pairs]))
    columns.append(("tokens/s", [(_rate(model), _paper_rate(row)) for row, model in pairs]))
    columns.append(("speed, %", [(_speed(model), _paper_speed(row)) for row, model in pairs]))
    columns.append(("parameters", [(_parameters(model), _paper_parameters(row)) for row, model in pairs]))
    columns.append(("parameters, %", [(_percent(model, models), _paper_percent(row)) for row, model in pairs]))
    return columns


def _score(model: Ours | None, metric: str) -> str:
    entry = model.scores.get(metric) if model else None
    if not entry:
        return ""
    return with_deviation(entry["score"], entry.get("sd")) + (f" {DAGGER}" if entry["significant"] else "")


def _paper_score(row: PaperRow | None, metric: str) -> str:
    if metric in ("bleu", "spbleu"):
        if row is None or (row.pair == "multi") != (metric == "spbleu"):
            return ""
        metric = "bleu"
    value = getattr(row, metric, None)
    return (
        "" if value is None else f"{value:.1f}" + (f" {DAGGER}" if getattr(row, f"significant_{metric}", None) else "")
    )


def _rate(model: Ours | None) -> str:
    return with_deviation(model.tokens_per_s["mean"], model.tokens_per_s["sd"]) if model and model.tokens_per_s else ""


def _paper_rate(row: PaperRow | None) -> str:
    return with_deviation(row.tokens_per_s, row.tokens_per_s_sd) if row and row.tokens_per_s else ""


def _speed(model: Ours | None) -> str:
    return f"{100 * (model.speed['median'] - 1):+.0f}" if model and model.speed else ""


def _paper_speed(row: PaperRow | None) -> str:
    base = next(
        (
            one.tokens_per_s
            for one in rows()
            if row
            and one.configuration == "individual"
            and (one.table, one.size, one.pair) == (row.table, row.size, row.pair)
        ),
        None,
    )
    return f"{100 * (row.tokens_per_s / base - 1):+.0f}" if row and row.tokens_per_s and base else ""


def _parameters(model: Ours | None) -> str:
    return number(model.parameters) if model and model.parameters else ""


def _paper_parameters(row: PaperRow | None) -> str:
    return f"{row.params_millions} M" if row else ""


def _percent(model: Ours | None, models: Mapping[str, Ours]) -> str:
    """Of its baseline, as in the paper."""
    base = models.get(model.baseline or "") if model else None
    if model is None or base is None or not model.parameters or not base.parameters:
        return ""
    return f"{100 * model.parameters / base.parameters:.0f}"


def _paper_percent(row: PaperRow | None) -> str:
    return str(row.params_percent) if row else ""


def _label(row: PaperRow | None, model: Ours | None, of_paper: Sequence[PaperRow]) -> str:
    if row is None:
        return model.name if model else ""
    several = len({(one.size, one.pair) for one in of_paper}) > 1
    label = f"{row.row}, {row.size} {row.pair}" if several else row.row
    return f"{label} ({model.name})" if model else label


def _sizes(pairs: Sequence[tuple[PaperRow | None, Ours | None]]) -> list[str]:
    other = sorted({(model.size or "", row.size) for row, model in pairs if row and model and model.size != row.size})
    return [f"ours are of size {ours}, the paper's of size {theirs}" for ours, theirs in other]


def _vocabularies(pairs: Sequence[tuple[PaperRow | None, Ours | None]]) -> list[str]:
    """Where sizes are the same, but for the embeddings."""
    found = {(model.vocab_size, row.vocab_size) for row, model in pairs if row and model and model.size == row.size}
    return [
        f"ours have a vocabulary of {ours:,}, and the paper's counts need {theirs:,}: parameters and speeds are not "
        "comparable with the paper's"
        for ours, theirs in sorted((ours, theirs) for ours, theirs in found if ours not in (None, theirs))
    ]


def batch_size_report(results: Results, only_ours: bool = False) -> Report:
    """The paper's table of batch sizes: the individual model, One Wide FFN, and how much faster that is."""
    key = configuration_key("big", "one_wide_ffn", 49_152)
    own = individual_models({name: model.arch for name, model in results.models.items()})
    wide = next((one for name, one in results.models.items() if one.key == key and name in own), None)
    benchmark = next(
        (one for one in results.benchmarks if wide and wide.name in {e["name"] for e in one.entries}), None
    )
    if wide is None or benchmark is None:
        raise InputError(
            f"`--table {BATCH_SIZES_TABLE}` needs a benchmark of an individual model and of One Wide FFN: "
            "`owf benchmark owf_big owf_big_one_wide_ffn --batch-sizes 1,2,4 --json FILE`"
        )
    base = results.models[own[wide.name]]
    found = {(one["name"], one["batch_size"]): one for one in benchmark.entries}
    paper = {row.batch_size: row for row in batch_rows()}
    header = ("batch", base.name, "paper", wide.name, "paper", "speed-up, %", "paper")
    body, data = [], []
    for size in sorted({*(() if only_ours else paper), *(size for _, size in found)}):
        row = paper.get(size)
        ours = [found.get((model.name, size)) for model in (base, wide)]
        rates = [one["tokens_per_s"] if one else None for one in ours]
        by_run = ratios(rates[1], rates[0]) if rates[0] and rates[1] else []
        faster = 100 * (statistics.median(by_run) - 1) if by_run else None
        theirs = [(row.baseline, row.baseline_sd), (row.one_wide, row.one_wide_sd)] if row else [None, None]
        cells = [
            cell
            for rate, printed in zip(rates, theirs, strict=True)
            for cell in (
                with_deviation(rate["mean"], rate["sd"]) if rate else "-",
                with_deviation(*printed) if printed else "-",
            )
        ]
        body.append(
            [str(size), *cells, "-" if faster is None else f"{faster:+.0f}", f"{row.speed_up:+}" if row else "-"]
        )
        data.append({"batch_size": size, "ours": ours, "speed_up_percent": faster, "paper": row and vars(row)})
    notes = [
        f"- {note}"
        for note in (
            PRINTED,
            *(f"tokens/s: {note}" for note in about_speeds([benchmark])),
            "speed-up: median of the runs",
        )
    ]
    return Report(header, body, {"kind": REPORT_KIND, "table": BATCH_SIZES_TABLE, "rows": data}, notes)
