"""Models that CTranslate2 is to decode, exported for the time of a benchmark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from owf_fairseq.decoding.backends import CTRANSLATE2
from owf_fairseq.progress import Progress
from owf_fairseq.speed.benchmark_models import Candidate, arch_flags


@contextmanager
def exported(
    candidates: Sequence[Candidate], data: str | None = None, shortlist: int | None = None
) -> Iterator[list[Candidate]]:
    """Yields the models; those for CTranslate2 are in folders that are there until the end.

    Args:
        candidates: see ``benchmark.prepare_benchmark``.
        data: the folder of checkpoints' binary data, if it is not where they were trained.
        shortlist: symbols that the translations of archs may have; None for all.

    Raises:
        InputError: a checkpoint does not hold the model that it says.
    """
    missing = [one for one in candidates if one.named.choice.backend == CTRANSLATE2 and one.folder is None]
    with tempfile.TemporaryDirectory(prefix="owf-benchmark-") as place:
        folders = {}
        if missing:
            with Progress("models", len(missing), label="export to CTranslate2") as progress:
                for number, one in enumerate(missing):
                    folders[one.named] = str(Path(place) / str(number))
                    _export(one, Path(folders[one.named]), data, shortlist)
                    progress.advance(1)
        yield [replace(one, folder=folders.get(one.named, one.folder)) for one in candidates]


def _export(candidate: Candidate, folder: Path, data: str | None, shortlist: int | None) -> None:
    from owf_fairseq.checkpoints.stored_model import read_model
    from owf_fairseq.data.recorded import find_data
    from owf_fairseq.data.segmentation import SEGMENTATION_RECORD
    from owf_fairseq.decoding.fairseq_backend import FairseqBackend
    from owf_fairseq.decoding.vocabulary_map import ALWAYS_ALLOWED, VOCABULARY_MAP, VocabularyMap
    from owf_fairseq.export.export import write_model, write_stored
    from owf_fairseq.export.folder import copy_segmentation

    named = candidate.named
    folder.mkdir()
    if named.is_arch:
        made = FairseqBackend.from_arch(
            named.model, candidate.vocab_size, candidate.typed_flags, cpu=True, packed=False
        )
        flags = {"model": vars(arch_flags(named.model, candidate.typed_flags))}
        write_model(
            made.models[0], (made.source, made.target), folder, named.choice.quantization, flags, ("source", "target")
        )
        if shortlist is not None:
            symbols = made.target.symbols[made.target.nspecial :][: shortlist - len(ALWAYS_ALLOWED)]
            VocabularyMap(frozenset(symbols), {}).write(folder / VOCABULARY_MAP)
        return
    stored = read_model(named.model)
    recorded = find_data(stored.state, named.model, data)
    write_stored(stored, recorded, folder, named.choice.quantization)
    if (recorded.folder / SEGMENTATION_RECORD).exists():  # else `--segmentation` says it, or no text is measured
        copy_segmentation(recorded, None, folder)
