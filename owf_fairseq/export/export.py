"""`owf export`: a checkpoint to a folder that CTranslate2 serves, verified before it gets its name."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owf_fairseq import __version__
from owf_fairseq.data.recorded import RecordedData, find_data
from owf_fairseq.decoding import exported
from owf_fairseq.decoding.vocabulary_map import VOCABULARY_MAP
from owf_fairseq.errors import InputError, collect
from owf_fairseq.export.folder import copy_segmentation, write_json
from owf_fairseq.export.readme import readme
from owf_fairseq.files.folders import check_output, output_folder
from owf_fairseq.files.lines import PathLike, read_lines
from owf_fairseq.files.outputs import replaced_inputs

if TYPE_CHECKING:
    from fairseq.data import Dictionary

    from owf_fairseq.checkpoints.stored_model import StoredModel
    from owf_fairseq.decoding.vocabulary_map import VocabularyMap
    from owf_fairseq.export.shortlist import ShortlistVerification
    from owf_fairseq.export.verification import Verification

COMMAND = "owf export"
SENTENCES = 10
"""Of the checkpoint's own data that an export is verified on."""


@dataclass(frozen=True)
class Exported:
    """What was made.

    Attributes:
        folder: where.
        parameters: a shared one counted once.
        weights_bytes: of the file with the weights.
        verification: of it.
        shortlist: how that was verified; None if there is none.
    """

    folder: Path
    parameters: int
    weights_bytes: int
    verification: Verification
    shortlist: ShortlistVerification | None = None


def export(
    checkpoint: str,
    output: PathLike,
    quantization: str = "float32",
    verify_on: PathLike | None = None,
    data: PathLike | None = None,
    segmentation: str | None = None,
    shortlist: PathLike | None = None,
) -> Exported:
    """Exports a checkpoint to CTranslate2. The folder appears only when it has been verified.

    Args:
        checkpoint: a path.
        output: the folder to make; what this command wrote there before is replaced.
        quantization: one of ``folder.QUANTIZATIONS``.
        verify_on: a text file in the source language; by default the first sentences of the checkpoint's data.
        data: the folder with the dictionaries; by default it is found, see ``find_data``.
        segmentation: how text becomes pieces, if not as recorded, see ``RecordedData.segmentation``.
        shortlist: a file of `owf shortlist`, which the folder gets a copy of.

    Raises:
        InputError: with everything that forbids it at once; or the exported model is not the checkpoint's.
    """
    problems = check_output(output, COMMAND)
    collect(problems, exported.check_installed)
    if quantization not in exported.QUANTIZATIONS:
        problems.append(f"`--quantization` must be one of {', '.join(exported.QUANTIZATIONS)}, but is '{quantization}'")
    if os.pathsep in checkpoint and not os.path.exists(checkpoint):
        raise InputError(
            [*problems, f"{checkpoint}: CTranslate2 has no ensembles; `owf average` makes one model of several"]
        )
    prepared = collect(problems, lambda: _prepare(checkpoint, verify_on, data, segmentation, shortlist))
    read = [checkpoint, verify_on, shortlist, *(prepared[1].files(segmentation) if prepared is not None else ())]
    problems += replaced_inputs("--output", output, read)
    if problems or prepared is None:
        raise InputError(problems)
    from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend
    from owf_fairseq.export import verification
    from owf_fairseq.export.shortlist import check_shortlist, verify_shortlist

    stored, recorded, sentences, allowed = prepared
    found_of_shortlist = None
    with output_folder(output, COMMAND) as folder:
        # first in float32, where a mistake in the structure can't hide behind what a coarser precision rounds
        for precision in dict.fromkeys(("float32", quantization)):
            write_stored(stored, recorded, folder, precision)
            if allowed is not None:
                allowed.write(folder / VOCABULARY_MAP)
            with without_ctranslate2s_warnings():  # the verification says in which precision it was computed
                backend = CTranslate2Backend(folder, cpu=True)
            kept = [pieces for pieces in sentences if len(pieces) <= backend.max_source_length]
            if not kept:
                raise InputError(
                    f"`--verify`: all sentences have more pieces than the model takes ({backend.max_source_length:,})"
                )
            dictionaries = recorded.joined_dictionaries()
            model = stored.build(*dictionaries)
            found = verification.verify(model, *dictionaries, backend.without_shortlist(), kept)
            verification.check_verification(found)
            if allowed is not None:
                found_of_shortlist = verify_shortlist(model, *dictionaries, backend, kept, found.threshold)
                check_shortlist(found_of_shortlist)
        copy_segmentation(recorded, segmentation, folder)
        record = {**backend.exported.record, "verification": asdict(found)}
        if found_of_shortlist is not None:
            record["shortlist"] = asdict(found_of_shortlist)
        write_json(folder / exported.EXPORT_RECORD, record)
        (folder / "README.md").write_text(readme(replace(backend.exported, record=record)), "utf-8")
    size = (Path(output) / exported.WEIGHTS).stat().st_size
    return Exported(Path(output), record["parameters"], size, found, found_of_shortlist)


def write_stored(stored: StoredModel, recorded: RecordedData, folder: Path, quantization: str) -> None:
    """Writes the model of a checkpoint; see ``write_model``.

    Raises:
        InputError: the checkpoint does not hold the model that it says, or the data are not its own.
    """
    dictionaries = recorded.joined_dictionaries()
    langs = (recorded.source, recorded.target)
    write_model(stored.build(*dictionaries), dictionaries, folder, quantization, training_flags(stored.state), langs)


def write_model(
    model: Any,
    dictionaries: tuple[Dictionary, Dictionary],
    folder: Path,
    quantization: str,
    flags: Mapping[str, Any],
    langs: tuple[str, str],
) -> None:
    """Writes CTranslate2's files, the flags and the record.

    Args:
        model: that ``inexpressible`` has no objection to, on the CPU. CTranslate2 quantises its weights in place: it
            can't be used any more.
        dictionaries: of source and target.
        folder: an empty one.
        quantization: one of ``folder.QUANTIZATIONS``.
        flags: of the training, by section; ``model`` holds those of the model.
        langs: source and target.
    """
    from owf_fairseq.export.ctranslate2_spec import ModelConverter

    half_positions = quantization.startswith("int8")
    ModelConverter(model, *dictionaries, half_positions).convert(str(folder), quantization=quantization, force=True)
    write_json(folder / exported.FLAGS, flags)
    record = {
        "kind": "export",
        "format": "ctranslate2",
        "versions": {"owf_fairseq": __version__, "ctranslate2": _ctranslate2_version()},
        "arch": flags["model"].get("arch") or flags["model"].get("_name"),
        "source": langs[0],
        "target": langs[1],
        "quantization": quantization,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        # both count the end-of-sentence symbol
        "max_source_length": model.max_positions()[0] - 1,
        "max_target_length": model.max_decoder_positions() - 1,
        "target_vocabulary_size": len(dictionaries[1]),
    }
    write_json(folder / exported.EXPORT_RECORD, record)


@contextmanager
def without_ctranslate2s_warnings() -> Iterator[None]:
    """Lets CTranslate2 log errors only, until the end."""
    import ctranslate2

    before = ctranslate2.get_log_level()
    ctranslate2.set_log_level(logging.ERROR)
    try:
        yield
    finally:
        ctranslate2.set_log_level(before)


def _ctranslate2_version() -> str:
    import ctranslate2

    return str(ctranslate2.__version__)


_Prepared = tuple["StoredModel", RecordedData, list[list[str]], "VocabularyMap | None"]


def _prepare(
    checkpoint: str,
    verify_on: PathLike | None,
    data: PathLike | None,
    segmentation: str | None,
    shortlist: PathLike | None,
) -> _Prepared:
    """Reads everything that an export needs.

    Raises:
        InputError: with every problem.
    """
    from owf_fairseq.checkpoints.stored_model import read_model
    from owf_fairseq.export.inexpressible import inexpressible
    from owf_fairseq.export.shortlist import read_shortlist

    problems: list[str] = []
    stored = read_model(checkpoint)
    problems += [f"{checkpoint}: {problem}" for problem in inexpressible(stored.args)]
    collect(problems, stored.check)
    recorded = collect(problems, lambda: find_data(stored.state, checkpoint, data))
    if recorded is None:
        raise InputError(problems)
    dictionaries = collect(problems, recorded.dictionaries)
    allowed = None
    if shortlist is not None and dictionaries is not None:
        allowed = collect(problems, lambda: read_shortlist(shortlist, *dictionaries))
    cutter = collect(problems, lambda: recorded.segmentation(segmentation))
    sentences: list[list[str]] | None = []
    if verify_on is None:
        sentences = collect(problems, lambda: recorded.sentences(SENTENCES))
    elif cutter is not None:
        lines = collect(problems, lambda: read_lines(verify_on))
        sentences = [cutter.encode(line).split() for line in lines or () if cutter.clean(line)]
        if lines is not None and not sentences:
            problems.append(f"`--verify` {os.fspath(verify_on)} has no sentence")
    if problems or sentences is None:
        raise InputError(problems)
    return stored, recorded, sentences, allowed


def training_flags(state: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of the training by section, as fairseq stores them now; earlier versions had no sections."""
    from owf_fairseq.checkpoints.stored_model import model_flags

    return {**(state.get("cfg") or {}), "model": model_flags(state)}
