"""The paper's rows and numbers, to set ours beside them.

Source: Pires, Lopes, Assogba and Setiawan, "One Wide Feedforward is All You Need" (2023, arXiv:2309.01826). Its tables
are in ``paper_results.tsv`` and ``paper_similarity.tsv``, one line a row, as printed; what does not add up in them is
in ``SLIPS`` and ``SIMILARITY_SLIPS``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from owf_fairseq.sharing import ARCHS, SIZES, arch_name
from owf_fairseq.tables import Report, number

if TYPE_CHECKING:
    from owf_fairseq.parameters import ParameterCount

RESULTS = Path(__file__).with_name("paper_results.tsv")
SIMILARITY_TABLE = "similarity"
SIMILARITY = Path(__file__).with_name("paper_similarity.tsv")

VOCAB_SIZES = {"en-de": 50_408, "en-ro": 39_840, "multi": 240_014}
"""Rows of the embeddings that the paper's counts need. (Its text says 32K for en-de, which gives other counts.)"""


@dataclass(frozen=True)
class PaperRow:
    """One row of one table of the paper, as printed. What the paper leaves out is None.

    Attributes:
        table: sharing, dropping, one_wide, other (architectures and languages), custom_sharing or attention.
        row: its label in the table.
        pair: a key of ``VOCAB_SIZES``.
        size, configuration: as in ``sharing.py``.
        shared_ffn_dim: d_ff' of the FFN that layers share.
        bleu, chrf, comet: scores, 0 to 100.
        tokens_per_s, tokens_per_s_sd: decoding speed in target tokens a second on the authors' GPU, and its deviation.
        params_millions, params_percent: parameters in millions, and in % of the table's individual model.
        significant_bleu, significant_chrf: whether the score differs significantly from the individual model's.
    """

    table: str
    row: str
    pair: str
    size: str
    configuration: str
    shared_ffn_dim: int | None
    bleu: float | None
    chrf: float | None
    comet: float | None
    tokens_per_s: float | None
    tokens_per_s_sd: float | None
    params_millions: int
    params_percent: int
    significant_bleu: bool | None
    significant_chrf: bool | None

    @property
    def arch(self) -> str:
        """The architecture of this row."""
        return arch_name(self.size, self.configuration)

    @property
    def vocab_size(self) -> int:
        """Rows of the embeddings, special symbols included."""
        return VOCAB_SIZES[self.pair]

    @property
    def ffn_flags(self) -> list[str]:
        """fairseq's flags that give the shared FFN its width; a stack whose FFNs are individual keeps the size's."""
        if self.shared_ffn_dim is None:
            return []
        configuration = SIZES[self.size].configurations[self.configuration]
        return [
            text
            for stack in ("encoder", "decoder")
            if configuration.shares_ffn(stack)
            for text in (f"--{stack}-ffn-embed-dim", str(self.shared_ffn_dim))
        ]

    @property
    def slip(self) -> Slip | None:
        """What the paper prints wrongly in this row."""
        return SLIPS.get((self.table, self.size, self.configuration, self.shared_ffn_dim))


@dataclass(frozen=True)
class Slip:
    """A number of the paper that does not follow from its own model sizes.

    Attributes:
        column: of ``paper_results.tsv``.
        printed: the number in the paper.
        exact: what the count gives, rounded as the paper rounds.
        unit: behind both numbers.
    """

    column: str
    printed: int
    exact: int
    unit: str

    def __str__(self) -> str:
        return f"printed in the paper: {self.printed}{self.unit}, exact {self.exact}{self.unit}"


# By table, size, configuration and shared_ffn_dim.
SLIPS: dict[tuple[str, str, str, int | None], Slip] = {
    ("one_wide", "big", "shared_enc_no_dec", 4096): Slip("params_millions", 135, 136, " M"),
    ("one_wide", "big", "shared_enc_no_dec", 24576): Slip("params_percent", 80, 78, " %"),
    ("one_wide", "big", "shared_enc_no_dec", 98304): Slip("params_percent", 145, 144, " %"),
    ("other", "decoder_only", "shared_dec", 4096): Slip("params_percent", 48, 54, " %"),
}


@dataclass(frozen=True)
class PaperSimilarity:
    """One row of a similarity table of the paper, as printed; all are of Transformer Big on WMT22 English-German.

    Attributes:
        table: ``raw`` or ``normalised``, in which the benchmark, Transformer Big with other seeds, has 100.
        row: its label. (The raw table prints 41952 for 49152.)
        configuration, shared_ffn_dim: as in ``PaperRow``.
        values: by ``encoder_cka``, ``encoder_lns``, ``decoder_cka``, ``decoder_lns``.
    """

    table: str
    row: str
    configuration: str
    shared_ffn_dim: int | None
    values: dict[str, float]


SIMILARITY_SLIPS = {("SharedEnc", "encoder_lns"), ("SharedEncDec", "encoder_lns"), ("SharedEncNoDec", "encoder_lns")}
"""Normalised numbers, by row and column, that don't follow from the raw ones, whatever was rounded."""


def similarity_rows() -> list[PaperSimilarity]:
    """All rows of the paper's similarity tables, in the paper's order."""
    names = [f"{stack}_{metric}" for stack in ("encoder", "decoder") for metric in ("cka", "lns")]
    with SIMILARITY.open(encoding="utf-8", newline="") as lines:
        return [
            PaperSimilarity(
                line["table"],
                line["row"],
                line["configuration"],
                int(line["shared_ffn_dim"]) if line["shared_ffn_dim"] else None,
                {name: float(line[name]) for name in names},
            )
            for line in csv.DictReader(lines, delimiter="\t")
        ]


def rows() -> list[PaperRow]:
    """All rows of the paper's tables, in the paper's order."""

    def score(text: str) -> float | None:
        return float(text) if text else None

    def truth(text: str) -> bool | None:
        return {"yes": True, "no": False, "": None}[text]

    with RESULTS.open(encoding="utf-8", newline="") as lines:
        return [
            PaperRow(
                table=line["table"],
                row=line["row"],
                pair=line["pair"],
                size=line["size"],
                configuration=line["configuration"],
                shared_ffn_dim=int(line["shared_ffn_dim"]) if line["shared_ffn_dim"] else None,
                bleu=score(line["bleu"]),
                chrf=score(line["chrf"]),
                comet=score(line["comet"]),
                tokens_per_s=score(line["tokens_per_s"]),
                tokens_per_s_sd=score(line["tokens_per_s_sd"]),
                params_millions=int(line["params_millions"]),
                params_percent=int(line["params_percent"]),
                significant_bleu=truth(line["significant_bleu"]),
                significant_chrf=truth(line["significant_chrf"]),
            )
            for line in csv.DictReader(lines, delimiter="\t")
        ]


def rows_of_table(table: str) -> list[PaperRow]:
    """The rows of a table, in the paper's order.

    Args:
        table: see ``PaperRow``; or ``similarity``, whose models are rows of other tables.
    """
    if table != SIMILARITY_TABLE:
        return [row for row in rows() if row.table == table]
    models = dict.fromkeys((row.configuration, row.shared_ffn_dim) for row in similarity_rows())
    of_big = {
        (row.configuration, row.shared_ffn_dim): row for row in rows() if (row.pair, row.size) == ("en-de", "big")
    }
    return [of_big[model] for model in models]


def count_row(row: PaperRow) -> ParameterCount | None:
    """Our count of a row's model, with the vocabulary that the row needs; None while its arch is not there."""
    if row.arch not in ARCHS:
        return None
    from owf_fairseq.parameters import count_parameters

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
