"""Which program decodes a model: chosen by its name, or by what the model is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from owf_fairseq.errors import InputError

if TYPE_CHECKING:
    from owf_fairseq.decoding.search import Backend

FAIRSEQ, CTRANSLATE2 = BACKENDS = ("fairseq", "ctranslate2")


@dataclass(frozen=True)
class Choice:
    """A backend, as in ``--backend ctranslate2:int8``.

    Attributes:
        backend: one of ``BACKENDS``.
        quantization: what CTranslate2 makes of the weights of a model that is not exported yet.
    """

    backend: str
    quantization: str = "float32"

    @classmethod
    def read(cls, text: str) -> Choice:
        """Reads it as it was typed.

        Raises:
            InputError: there is no such backend or quantization.
        """
        from owf_fairseq.decoding.exported import QUANTIZATIONS

        backend, colon, quantization = text.partition(":")
        if backend not in BACKENDS:
            raise InputError(f"`--backend` must be of {', '.join(BACKENDS)}, but is '{text}'")
        if colon and (backend != CTRANSLATE2 or quantization not in QUANTIZATIONS):
            allowed = ", ".join(f"{CTRANSLATE2}:{one}" for one in QUANTIZATIONS)
            raise InputError(f"`--backend` {text}: a quantization is one of {allowed}")
        return cls(backend, quantization or "float32")

    def __str__(self) -> str:
        return self.backend if self.quantization == "float32" else f"{self.backend}:{self.quantization}"


def backend_of(model: str) -> str:
    """The backend that reads a path: folders are exported models, everything else is a checkpoint or several."""
    return CTRANSLATE2 if os.path.isdir(model) else FAIRSEQ


def load_backend(
    model: str,
    backend: str | None = None,
    data: str | None = None,
    cpu: bool = False,
    fp16: bool = False,
    use_shortlist: bool | None = None,
    searches: int = 1,
) -> Backend:
    """Loads a model, ready to decode.

    Args:
        model: a checkpoint, several with ``:`` between, or a folder that `owf export` made.
        backend: one of ``BACKENDS``; by default see ``backend_of``.
        data: the folder with a checkpoint's dictionaries, if it is not where it was trained.
        cpu, fp16: see ``FairseqBackend``.
        use_shortlist, searches: see ``CTranslate2Backend``; fairseq does one search at a time, on all cores.

    Raises:
        InputError: with every problem of the model and of the flags beside it.
    """
    if (backend or backend_of(model)) == FAIRSEQ:
        if os.path.isdir(model):
            raise InputError(f"`--backend fairseq` needs a checkpoint, but {model} is a folder: leave the flag out")
        if use_shortlist:
            raise InputError(f"`--shortlist` is for exported models, and {model} is none: fairseq has no shortlists")
        from owf_fairseq.decoding.fairseq_backend import FairseqBackend

        return FairseqBackend.from_checkpoint(model, data, cpu, fp16)
    problems = misplaced(model, data, fp16)
    if problems:
        raise InputError(problems)
    from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend

    return CTranslate2Backend(model, cpu, searches=searches, use_shortlist=use_shortlist)


def misplaced(model: str, data: str | None, fp16: bool) -> list[str]:
    """What does not go with an exported model, a sentence each."""
    problems = []
    if os.path.isfile(model):
        problems.append(
            f"`--backend ctranslate2` needs a folder that `owf export` made, but {model} is a file: `owf export "
            f"{model} --output DIR` makes one of a checkpoint"
        )
    elif not os.path.isdir(model):
        problems.append(
            f"`--backend ctranslate2` needs a folder that `owf export` made, but there is no folder {model}"
        )
    if data is not None:
        problems.append("`--data` is for checkpoints: an exported model has its vocabulary in its folder")
    if fp16:
        problems.append(
            "`--fp16` is for checkpoints: `--quantization` of `owf export` sets an exported model's precision"
        )
    return problems
