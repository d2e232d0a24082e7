"""Decoding with CTranslate2: a folder that `owf export` made."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.data.work import cores
from owf_fairseq.decoding.exported import ExportedModel, check_installed
from owf_fairseq.decoding.search import Hypothesis, SearchOptions
from owf_fairseq.errors import InputError
from owf_fairseq.files.job import files_in
from owf_fairseq.files.lines import PathLike

_PADDING = "<pad>"
_ALMOST_NO_PENALTY = 1e-9


class CTranslate2Backend:
    """A ``search.Backend`` that runs an exported model. Several threads may search at the same time.

    The search is fairseq's, apart from three things. CTranslate2 normalises probabilities after it has ruled a symbol
    out, and not before, as the end of a sentence is up to ``min_len``. All hypotheses that end in one step count, also
    where the beam has fewer places left. And one that reaches its length cap ends with whatever piece is next best, and
    not with the end-of-sentence symbol: the piece is left out here, but its probability is in the score.

    With a shortlist, a translation has symbols of its sentence's shortlist only, or of those of the other sentences of
    its batch: CTranslate2 puts them together.

    Args:
        folder: that `owf export` made.
        cpu: use no GPU.
        threads: that a search uses; 0 for CTranslate2's default, which goes by ``OMP_NUM_THREADS``, or for one where
            there are several searches.
        searches: that run at the same time, on a CPU; more wait for their turn. 0 for one on each core.
        use_shortlist: whether to use the folder's; by default if it has one.

    Attributes:
        shortlist: that is used; None for none.

    Raises:
        InputError: the folder holds no exported model, or no shortlist, or CTranslate2 is not installed.
    """

    name = "ctranslate2"

    def __init__(
        self,
        folder: PathLike,
        cpu: bool = False,
        threads: int = 0,
        searches: int = 1,
        use_shortlist: bool | None = None,
    ) -> None:
        check_installed()
        import ctranslate2

        self.exported = ExportedModel.read(folder)
        self.shortlist = self.exported.shortlist() if use_shortlist is not False else None
        if use_shortlist and self.shortlist is None:
            raise InputError(
                f"`--shortlist`: {os.fspath(folder)} has none: `owf export --shortlist FILE` exports a model with one"
            )
        device = "cuda" if not cpu and ctranslate2.get_cuda_device_count() else "cpu"
        if searches != 1:
            searches, threads = (searches or cores(), threads or 1) if device == "cpu" else (1, threads)
        try:
            self.translator: Any = ctranslate2.Translator(
                os.fspath(folder), device=device, intra_threads=threads, inter_threads=searches
            )
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"CTranslate2 can't read {os.fspath(folder)} ({error}): export the checkpoint again"
            ) from error
        self.threads = threads
        self.searches = searches
        self.precision: str = self.translator.compute_type
        self.device_name = name_of(device)
        self.max_source_length = self.exported.max_source_length
        self.max_target_length = self.exported.max_target_length

    def without_shortlist(self) -> CTranslate2Backend:
        """The same model, whose translations may have all symbols."""
        other = copy.copy(self)
        other.shortlist = None
        return other

    @property
    def source_symbols(self) -> list[str]:
        """The pieces of the source vocabulary, special symbols aside."""
        return self.exported.source_symbols

    def segmentation(self, other: str | None = None) -> Segmentation:
        """See ``search.Backend``."""
        return self.exported.data.segmentation(other)

    def files(self, other: str | None = None) -> list[Path]:
        """See ``search.Backend``."""
        return [*files_in(self.exported.folder), *self.exported.data.files(other)]

    def search(self, batch: Sequence[Sequence[str]], options: SearchOptions) -> list[list[Hypothesis]]:
        """See ``search.Backend``."""
        caps = [min(options.cap(len(pieces)), self.max_target_length) for pieces in batch]
        found = self._search(batch, options, max(caps))
        # CTranslate2 has one cap for a batch. A search ends with the longest hypothesis that it gives: if that is below
        # the sentence's own cap, the search is the one that the sentence would have had alone.
        longest = [max(len(one.pieces) for one in hypotheses) for hypotheses in found]
        capped = [n for n, cap in enumerate(caps) if longest[n] >= cap and cap < max(caps)]
        for cap in sorted({caps[n] for n in capped}):
            these = [n for n in capped if caps[n] == cap]
            for n, hypotheses in zip(these, self._search([batch[n] for n in these], options, cap), strict=True):
                found[n] = hypotheses
        return [hypotheses[: options.nbest] for hypotheses in found]

    def synchronize(self) -> None:
        """See ``search.Backend``: a search has waited for the device when it returns."""

    def _search(self, batch: Sequence[Sequence[str]], options: SearchOptions, cap: int) -> list[list[Hypothesis]]:
        """All finished hypotheses of each sentence, at most ``cap`` pieces long, best first."""
        # a hypothesis ends with a symbol that is counted here, and the vocabulary may be smaller than the beam
        symbols = self.exported.target_vocabulary_size if self.shortlist is None else len(self.shortlist.always)
        beam = min(options.beam, symbols - 1)
        results = self.translator.translate_batch(
            [list(pieces) for pieces in batch],
            beam_size=beam,
            num_hypotheses=beam,
            # with none at all, CTranslate2 ends a search as soon as the best hypothesis is finished
            length_penalty=options.lenpen or _ALMOST_NO_PENALTY,
            max_decoding_length=cap + 1,
            min_decoding_length=min(options.min_len, cap),
            max_input_length=0,
            suppress_sequences=[[_PADDING]],
            use_vmap=self.shortlist is not None,
            return_end_token=True,  # so that it is counted in the length
            return_scores=True,
        )
        return [
            [
                Hypothesis(tuple(pieces[:-1]), score, score * len(pieces) ** options.lenpen)
                for pieces, score in zip(result.hypotheses, result.scores, strict=True)
            ]
            for result in results
        ]


def name_of(device: str) -> str:
    """A device as users know it."""
    if device == "cpu":
        return "CPU"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "GPU"
