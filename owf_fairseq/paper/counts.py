"""The paper's parameter counts beside ours."""

from __future__ import annotations

from owf_fairseq.paper.rows import PaperRow, rows
from owf_fairseq.parameters import ParameterCount, count_parameters
from owf_fairseq.sharing import ARCHS
from owf_fairseq.tables import Report, number


def count_row(row: PaperRow) -> ParameterCount | None:
    """Our count of a row's model, with the vocabulary that the row needs; None while its arch is not there."""
    if row.arch not in ARCHS:
        return None
    return count_parameters(row.arch, row.vocab_size, row.ffn_flags)


def parameter_counts() -> Report:
    """Every row of the paper's tables, what it prints and what we count."""
    cells, data = [], []
    for row in rows():
        count = count_row(row)
        note = "this arch is not built yet" if count is None else ""
        note = "; ".join(text for text in (note, str(row.slip or "")) if text)
        cells.append(
            [
                *(row.table, row.row, row.pair, row.arch, number(row.shared_ffn_dim), number(row.vocab_size)),
                *(number(row.params_millions), number(count.total / 1e6 if count else None, 1)),
                *(number(row.params_percent), number(count.percent if count else None, 1), note),
            ]
        )
        data.append(
            {
                "table": row.table,
                "row": row.row,
                "pair": row.pair,
                "arch": row.arch,
                "flags": row.ffn_flags,
                "vocab_size": row.vocab_size,
                "paper_millions": row.params_millions,
                "paper_percent": row.params_percent,
                "total": count.total if count else None,
                "percent": round(count.percent, 2) if count else None,
                "note": note,
            }
        )
    header = (
        *("table", "row", "pair", "arch", "d_ff'", "vocabulary"),
        *("paper, M", "ours, M", "paper, %", "ours, %", "note"),
    )
    notes = (
        "Paper: Pires et al. 2023, arXiv:2309.01826, as printed. Ours: exact, a shared tensor once, one embedding "
        "matrix.",
        "%: of the individual model of the same size and vocabulary.",
    )
    return Report(header, cells, data, notes, words=(0, 1, 2, 3, 10))
