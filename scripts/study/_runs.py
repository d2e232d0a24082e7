"""Which models the study trains, for which question, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from owf_fairseq.errors import InputError
from owf_fairseq.sharing import CONFIGURATIONS

SIZE = "multi30k"
"""Of the named architectures: 4 + 4 layers, d 128, d_ff 256, 4 heads."""

UPDATES = 8000


@dataclass(frozen=True)
class Row:
    """A model to train.

    Attributes:
        configuration: of the architecture.
        label: for tables.
        flags: that it has beside those of the architecture, without dashes.
        paper: the label of its row in the paper's tables of Transformer Big; none if the paper has none.
        start: the configuration that is trained for the first half of the updates; what `owf convert` makes of it is
            trained for the other half.
    """

    configuration: str
    label: str
    flags: Mapping[str, str] = field(default_factory=dict)
    paper: str | None = None
    start: str | None = None

    @property
    def one_cache_matters(self) -> bool:
        """Whether a decoder that keeps one cache for each attention object would mix those of several layers."""
        return CONFIGURATIONS[self.configuration].flags.get("decoder_self_attn") == "shared"


def _of_paper(configuration: str, paper: str) -> Row:
    return Row(configuration, CONFIGURATIONS[configuration].paper, paper=paper)


def _attention(configuration: str) -> Row:
    label = CONFIGURATIONS[configuration].paper
    return Row(configuration, f"attention: {label}", paper=label)


def _encoder_width(width: int) -> dict[str, str]:
    return {"encoder-ffn-embed-dim": str(width)}


_MIDDLE = {
    f"{stack}-{flag}": value
    for stack in ("encoder", "decoder")
    for flag, value in {"ffn": "-,0,1,-", "ffn-embed-dim": "512"}.items()
}

# The names are those of the archs and configs, with what is added to them behind.
ROWS: dict[str, Row] = {
    "individual": _of_paper("individual", "Transformer Big"),
    "shared_enc_no_dec": _of_paper("shared_enc_no_dec", "SharedEncNoDec"),
    "no_dec": _of_paper("no_dec", "NoDec"),
    "one_wide_ffn": _of_paper("one_wide_ffn", "SharedEncNoDec 49152"),
    # the attention table
    "attention_sss": _attention("attention_sss"),
    "attention_ssi": _attention("attention_ssi"),
    "attention_sii": _attention("attention_sii"),
    "attention_isi": _attention("attention_isi"),
    "attention_iss": _attention("attention_iss"),
    "attention_iis": _attention("attention_iis"),
    # One Wide FFN of half and double width, and as many parameters in the encoder's FFNs without sharing them
    "shared_enc_no_dec_1024": Row(
        "shared_enc_no_dec", "SharedEncNoDec, d_ff' 1,024", _encoder_width(1024), "SharedEncNoDec 24576"
    ),
    "shared_enc_no_dec_4096": Row(
        "shared_enc_no_dec", "SharedEncNoDec, d_ff' 4,096", _encoder_width(4096), "SharedEncNoDec 98304"
    ),
    "no_dec_512": Row("no_dec", "NoDec, encoder d_ff 512", _encoder_width(512)),
    # the tables of sharing, dropping and custom sharing
    "shared_enc": _of_paper("shared_enc", "SharedEnc"),
    "shared_dec": _of_paper("shared_dec", "SharedDec"),
    "shared_enc_shared_dec": _of_paper("shared_enc_shared_dec", "SharedEncSharedDec"),
    "shared_enc_dec": _of_paper("shared_enc_dec", "SharedEncDec"),
    "no_enc": _of_paper("no_enc", "NoEnc"),
    "no_enc_no_dec": _of_paper("no_enc_no_dec", "NoEncNoDec"),
    "no_enc_shared_dec": _of_paper("no_enc_shared_dec", "NoEncSharedDec"),
    "sequence_2": _of_paper("sequence_2", "Sequence M=2"),
    "cycle_2": _of_paper("cycle_2", "Cycle M=2"),
    "cycle_rev_2": _of_paper("cycle_rev_2", "Cycle Rev M=2"),
    # beyond the paper
    "shared_enc_no_dec_norms": Row(
        "shared_enc_no_dec", "SharedEncNoDec, a layer norm each", {"ffn-layer-norm": "per-layer"}
    ),
    "one_wide_ffn_norms": Row("one_wide_ffn", "One Wide FFN, a layer norm each", {"ffn-layer-norm": "per-layer"}),
    "middle": Row("individual", "FFNs in the two middle layers", _MIDDLE),
    "shared_enc_shared_dec_bias": Row(
        "shared_enc_shared_dec", "SharedEncSharedDec, a bias each", {"ffn-per-layer": "bias"}
    ),
    "shared_enc_shared_dec_lora_4": Row(
        "shared_enc_shared_dec", "SharedEncSharedDec, LoRA of rank 4 each", {"ffn-per-layer": "lora-4"}
    ),
    "one_wide_ffn_warm": Row("one_wide_ffn", "One Wide FFN from Transformer", start="individual"),
}


@dataclass(frozen=True)
class Question:
    """What one table answers.

    Attributes:
        title: of the table and its picture.
        rows: names in ``ROWS``, in the order of the table.
        baselines: those of them that others are compared with, each with the last one before it.
    """

    title: str
    rows: Sequence[str]
    baselines: Sequence[str] = ("individual",)


MAIN = ("individual", "shared_enc_no_dec", "no_dec", "one_wide_ffn")
ATTENTION = tuple(name for name in ROWS if name.startswith("attention_"))

QUESTIONS: dict[str, Question] = {
    "main": Question(
        "One Wide FFN", (*MAIN, "shared_enc_no_dec_1024", "shared_enc_no_dec_4096", "no_dec_512")
    ),
    "attention": Question("Shared attention", ("individual", *ATTENTION)),
    "sharing": Question(
        "Shared and dropped FFNs",
        (
            *("individual", "shared_enc", "shared_dec", "shared_enc_shared_dec", "shared_enc_dec"),
            *("no_enc", "no_dec", "no_enc_no_dec", "shared_enc_no_dec", "no_enc_shared_dec"),
            *("sequence_2", "cycle_2", "cycle_rev_2"),
        ),
    ),
    "layer_norm": Question(
        "Layer norms of a shared FFN",
        ("shared_enc_no_dec", "shared_enc_no_dec_norms", "one_wide_ffn", "one_wide_ffn_norms"),
        ("shared_enc_no_dec", "one_wide_ffn"),
    ),
    "layouts": Question(
        "Layouts beyond the paper's",
        (
            *("individual", "middle", "shared_enc_shared_dec"),
            *("shared_enc_shared_dec_bias", "shared_enc_shared_dec_lora_4"),
        ),
        ("individual", "shared_enc_shared_dec"),
    ),
    "warm_start": Question("Warm start", ("one_wide_ffn", "one_wide_ffn_warm"), ("one_wide_ffn",)),
}  # fmt: skip

EQUAL = ("one_wide_ffn", "no_dec_512", "middle", "one_wide_ffn_warm")
"""Rows with the individual model's number of parameters, within 1 %."""

_REST = tuple(name for name in ROWS if name not in (*MAIN, *ATTENTION))

ORDER = ((MAIN, (1,)), (ATTENTION, (1,)), (MAIN, (2, 3)), (_REST, (1,)))
"""Names and seeds, what is wanted first before the others."""

SMOKE = ((("individual", "one_wide_ffn", "attention_isi"), (1, 2)),)


@dataclass(frozen=True)
class Run:
    """One training: a row and a seed."""

    name: str
    seed: int

    @property
    def folder(self) -> str:
        """Its name as that of a folder, as `owf train --seeds` and `owf evaluate --seeds` have it."""
        return f"{self.name}_seed_{self.seed}"


def runs(question: str | None = None, order: Sequence[tuple[Sequence[str], Sequence[int]]] = ORDER) -> list[Run]:
    """The runs of one question or of all, in the order in which they are wanted.

    Raises:
        InputError: there is no such question.
    """
    if question is not None and question not in QUESTIONS:
        raise InputError(f"`--only` must be one of {', '.join(QUESTIONS)}, but is '{question}'")
    wanted = ROWS if question is None else QUESTIONS[question].rows
    return [Run(name, seed) for names, seeds in order for seed in seeds for name in names if name in wanted]


def find_row(name: str) -> Row:
    """The row of a name.

    Raises:
        InputError: there is none.
    """
    if name not in ROWS:
        raise InputError(f"NAME must be one of {', '.join(ROWS)}, but is '{name}'")
    return ROWS[name]
