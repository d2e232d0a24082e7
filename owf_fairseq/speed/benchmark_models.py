"""The models of a benchmark, checkpoints and bare archs: what they are, told before anything is loaded."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from owf_fairseq.cost_model.cost import ModelShape, bytes_of, shape_of_arch, shape_of_flags
from owf_fairseq.decoding.backends import CTRANSLATE2
from owf_fairseq.decoding.exported import WEIGHTS
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.job import files_in
from owf_fairseq.speed.benchmark_names import Named

if TYPE_CHECKING:
    from torch import Tensor

    from owf_fairseq.checkpoints.model_facts import ModelFacts
    from owf_fairseq.checkpoints.stored_model import StoredModel
    from owf_fairseq.decoding.search import Backend


@dataclass(frozen=True)
class Loading:
    """How models are loaded; see ``FairseqBackend`` and ``CTranslate2Backend``.

    Attributes:
        data: the folder of checkpoints' binary data, if it is not where they were trained.
        cpu: use no GPU. fp16: decode in half precision. packed: lay matrices out for a CPU. threads: of a search.
        use_shortlist: that an exported model has.
        searches: of an exported model, at the same time.
    """

    data: str | None = None
    cpu: bool = False
    fp16: bool = False
    packed: bool = True
    threads: int = 1
    use_shortlist: bool = True
    searches: int = 1


@dataclass(frozen=True)
class Candidate:
    """A model that is going to be measured.

    Attributes:
        named: as it was typed.
        typed_flags: those of the command line, for an arch.
        facts: of all its models.
        shapes: one, or one for each model of an ensemble.
        max_source_length, max_target_length: pieces, without the end-of-sentence symbol.
        vocab_size: of the target language.
        folder: with the exported model, for CTranslate2; None while there is none (see ``benchmark_export``).
        shortlist: whether it decodes with one; known when it has been loaded.
    """

    named: Named
    typed_flags: tuple[str, ...]
    facts: ModelFacts
    shapes: tuple[ModelShape, ...]
    max_source_length: int
    max_target_length: int
    vocab_size: int
    folder: str | None = None
    shortlist: bool = False

    def load(self, loading: Loading) -> Backend:
        """The model, ready to decode.

        Raises:
            InputError: it cannot be loaded.
        """
        if self.folder is not None:
            from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend

            use = None if loading.use_shortlist else False
            return CTranslate2Backend(self.folder, loading.cpu, loading.threads, loading.searches, use)
        from owf_fairseq.decoding.fairseq_backend import FairseqBackend

        if self.named.is_arch:
            return FairseqBackend.from_arch(
                self.named.model, self.vocab_size, self.typed_flags, loading.cpu, loading.fp16, packed=loading.packed
            )
        return FairseqBackend.from_checkpoint(
            self.named.model, loading.data, loading.cpu, loading.fp16, packed=loading.packed
        )

    def as_json(self, precision: str) -> dict[str, Any]:
        """Its facts, and in which precision it was decoded."""
        return {
            "name": self.named.name,
            "arch": self.facts.arch,
            "configuration": self.facts.configuration,
            "backend": self.named.choice.backend,
            "precision": precision,
            "shortlist": self.shortlist,
            "checkpoint": None if self.named.is_arch else self.named.model,
            "flags": list(self.facts.flags),
            "parameters": self.facts.parameters,
            "weights_mb": self._weights_bytes(precision) / 1e6,
            "folder_mb": None if self.folder is None else sum(map(os.path.getsize, files_in(self.folder))) / 1e6,
            "vocab_size": self.vocab_size,
            "layers": self.facts.layers,
            "ffn_dims": self.facts.ffn_dims,
        }

    def _weights_bytes(self, precision: str) -> int:
        """Of the exported file, where there is one."""
        if self.folder is not None:
            return os.path.getsize(os.path.join(self.folder, WEIGHTS))
        return self.facts.parameters * bytes_of(precision)[0]


def shapes_by_name(named: Sequence[Named], flags: Sequence[str], vocab_size: int) -> list[ModelShape]:
    """The shapes of archs, for predictions; without flags neither torch nor fairseq is needed.

    Raises:
        InputError: a checkpoint is among them, or flags that are none or describe no model.
    """
    problems = [
        f"`--predict` takes archs, and {one.model} is a checkpoint: name its arch (`owf inspect` prints it)"
        for one in named
        if not one.is_arch
    ]
    shapes = []
    for one in named if not problems else ():
        try:
            shapes.append(
                shape_of_flags(arch_flags(one.model, flags), vocab_size)
                if flags
                else shape_of_arch(one.model, vocab_size)
            )
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(dict.fromkeys(problems))
    return shapes


def arch_flags(arch: str, flags: Sequence[str]) -> Namespace:
    """All flags of an arch with what was given."""
    from fairseq.models import ARCH_CONFIG_REGISTRY

    from owf_fairseq.parameters import given_flags

    args = Namespace(**given_flags(arch, flags), arch=arch)
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def describe_candidate(
    named: Named,
    flags: Sequence[str],
    vocab_size: int,
    data: str | None = None,
    needs_text: bool = False,
    segmentation: str | None = None,
) -> Candidate:
    """What a model is, without its weights.

    Args:
        named: an arch, or checkpoints.
        flags: of the model, for an arch.
        vocab_size: for an arch.
        data: folder of the binary data of checkpoints.
        needs_text: whether they must know how text is cut into pieces.
        segmentation: what they know it from, see ``RecordedData.segmentation``.

    Raises:
        InputError: with every problem of this model.
    """
    from owf_fairseq.checkpoints.model_facts import facts_of_flags, facts_of_stored

    if named.is_exported:
        return _describe_exported(named, needs_text, segmentation)
    if named.is_arch:
        from owf_fairseq.checkpoints.stored_model import build_skeleton
        from owf_fairseq.parameters import count_parameters

        # first, because it tells what fairseq cannot build
        parameters = count_parameters(named.model, vocab_size, flags).total
        flags_of = [arch_flags(named.model, flags)]
        skeletons = [build_skeleton(flags_of[0], _embeddings(vocab_size), named.model)]
        facts = facts_of_flags([(flags_of[0], named.model)], parameters)
    else:
        stored = _read_all(named, data, needs_text, segmentation)
        flags_of = [one.args for one in stored]
        skeletons = [one.skeleton for one in stored]
        facts = facts_of_stored(stored)
    if named.choice.backend == CTRANSLATE2:
        _check_exportable(named, flags_of)
    sizes = [model.decoder.embed_tokens.num_embeddings for model in skeletons]
    return Candidate(
        named,
        tuple(flags),
        facts,
        tuple(shape_of_flags(args, size) for args, size in zip(flags_of, sizes, strict=True)),
        # both count the end-of-sentence symbol
        min(model.max_positions()[0] for model in skeletons) - 1,
        min(model.max_decoder_positions() for model in skeletons) - 1,
        sizes[0],
    )


def _describe_exported(named: Named, needs_text: bool, segmentation: str | None) -> Candidate:
    """What a folder says of its model; see ``describe_candidate``."""
    from owf_fairseq.checkpoints.model_facts import facts_of_flags
    from owf_fairseq.decoding.exported import ExportedModel, check_installed

    check_installed()
    exported = ExportedModel.read(named.model)
    stored = exported.model()
    if needs_text:
        exported.data.segmentation(segmentation)
    size = exported.target_vocabulary_size
    return Candidate(
        named,
        (),
        facts_of_flags([(stored.args, stored.arch)], int(exported.record["parameters"])),
        (shape_of_flags(stored.args, size),),
        exported.max_source_length,
        exported.max_target_length,
        size,
        named.model,
    )


def _check_exportable(named: Named, flags: Sequence[Namespace]) -> None:
    """Refuses what CTranslate2 cannot decode.

    Raises:
        InputError: with every reason.
    """
    from owf_fairseq.decoding.exported import check_installed
    from owf_fairseq.export.inexpressible import inexpressible

    problems: list[str] = []
    collect(problems, check_installed)
    if len(flags) > 1:
        problems.append(f"`--backend {named.choice}`: CTranslate2 has no ensembles, such as {named.model}")
    problems += [
        f"`--backend {named.choice}`, {named.model}: {reason}" for one in flags for reason in inexpressible(one)
    ]
    if problems:
        raise InputError(dict.fromkeys(problems))


def _embeddings(vocab_size: int) -> dict[str, Tensor]:
    """What tells ``build_skeleton`` the size of both vocabularies."""
    import torch

    return {"encoder.embed_tokens.weight": torch.empty(vocab_size, 0, device="meta")}


def _read_all(named: Named, data: str | None, needs_text: bool, segmentation: str | None) -> list[StoredModel]:
    """The checkpoints of a model, whose data are there."""
    from owf_fairseq.checkpoints.stored_model import read_model
    from owf_fairseq.data.recorded import find_data

    def read(path: str) -> StoredModel:
        stored = read_model(path)
        found = find_data(stored.state, path, data)
        if needs_text:
            found.segmentation(segmentation)
        return stored

    problems: list[str] = []
    stored = [collect(problems, partial(read, path)) for path in named.checkpoints]
    if problems:
        raise InputError(problems)
    return [one for one in stored if one is not None]
