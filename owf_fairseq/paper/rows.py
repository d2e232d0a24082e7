"""The paper's rows and numbers, to set ours beside them.

Source: Pires, Lopes, Assogba and Setiawan, "One Wide Feedforward is All You Need" (2023, arXiv:2309.01826). Its tables
are in ``results.tsv`` and ``similarity.tsv``, one line a row, as printed; what does not add up in them is
in ``SLIPS`` and ``SIMILARITY_SLIPS``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.sharing import SIZES, arch_name

RESULTS = Path(__file__).with_name("results.tsv")
SIMILARITY_TABLE = "similarity"
BATCH_SIZES_TABLE = "batch_size"
"""The tables of the paper whose models are rows of other tables."""

BATCH_SIZES_FILE = Path(__file__).with_name("batch_sizes.tsv")
SIMILARITY = Path(__file__).with_name("similarity.tsv")

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
        column: of ``results.tsv``.
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
        table: see ``PaperRow``; or ``similarity`` or ``batch_size``, whose models are rows of other tables.
    """
    if table == BATCH_SIZES_TABLE:
        wanted = (None, SIZES["big"].wide_ffn_dim)
        return [row for row in rows() if row.table == "one_wide" and row.shared_ffn_dim in wanted]
    if table != SIMILARITY_TABLE:
        return [row for row in rows() if row.table == table]
    models = dict.fromkeys((row.configuration, row.shared_ffn_dim) for row in similarity_rows())
    of_big = {
        (row.configuration, row.shared_ffn_dim): row for row in rows() if (row.pair, row.size) == ("en-de", "big")
    }
    return [of_big[model] for model in models]


@dataclass(frozen=True)
class BatchRow:
    """A row of the paper's table of batch sizes: Transformer Big and One Wide FFN, in tokens a second.

    Attributes:
        batch_size: sentences. batches: how many of them the test set makes.
        baseline, baseline_sd, one_wide, one_wide_sd: speeds and their deviations over five runs.
        speed_up: of One Wide FFN, in %.
    """

    batch_size: int
    baseline: float
    baseline_sd: float
    one_wide: float
    one_wide_sd: float
    speed_up: int
    batches: int


def batch_rows() -> list[BatchRow]:
    """The table, in the paper's order."""
    with BATCH_SIZES_FILE.open(encoding="utf-8", newline="") as lines:
        return [
            BatchRow(
                batch_size=int(line["batch"]),
                baseline=float(line["transformer_big_tokens_per_s"]),
                baseline_sd=float(line["transformer_big_sd"]),
                one_wide=float(line["one_wide_tokens_per_s"]),
                one_wide_sd=float(line["one_wide_sd"]),
                speed_up=int(line["speed_up_percent"]),
                batches=int(line["batches"]),
            )
            for line in csv.DictReader(lines, delimiter="\t")
        ]
