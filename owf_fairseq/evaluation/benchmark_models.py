"""The models of a benchmark as users name them: checkpoints and bare archs, checked before anything is loaded."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from owf_fairseq.errors import InputError
from owf_fairseq.evaluation.cost_model import ModelShape, shape_of_arch, shape_of_flags
from owf_fairseq.sharing import ARCHS, CONFIGURATIONS

if TYPE_CHECKING:
    from owf_fairseq.decoding.fairseq_backend import FairseqBackend
    from owf_fairseq.stored_model import StoredModel


@dataclass(frozen=True)
class Named:
    """A model as it was typed.

    Attributes:
        name: before the ``=``, or all of it.
        model: an arch, or one checkpoint or several with ``:`` between.
    """

    name: str
    model: str

    @property
    def is_arch(self) -> bool:
        """Whether it is no checkpoint."""
        return self.model in ARCHS

    @property
    def checkpoints(self) -> list[str]:
        """The files."""
        return [] if self.is_arch else self.model.split(os.pathsep)


@dataclass(frozen=True)
class Loading:
    """How models are loaded; see ``FairseqBackend``.

    Attributes:
        data: the folder of checkpoints' binary data, if it is not where they were trained.
        cpu: use no GPU. fp16: decode in half precision. packed: lay matrices out for a CPU.
    """

    data: str | None = None
    cpu: bool = False
    fp16: bool = False
    packed: bool = True


@dataclass(frozen=True)
class Candidate:
    """A model that is going to be measured.

    Attributes:
        named: as it was typed.
        flags: of the model, for an arch.
        arch: of the model or of the first checkpoint.
        shapes: one, or one for each model of an ensemble.
        parameters: of all of them, a shared tensor once.
        max_source_length, max_target_length: pieces, without the end-of-sentence symbol.
        vocab_size: of the target language.
    """

    named: Named
    flags: tuple[str, ...]
    arch: str
    shapes: tuple[ModelShape, ...]
    parameters: int
    max_source_length: int
    max_target_length: int
    vocab_size: int

    def load(self, loading: Loading) -> FairseqBackend:
        """The model, ready to decode.

        Raises:
            InputError: it cannot be loaded.
        """
        from owf_fairseq.decoding.fairseq_backend import FairseqBackend

        if self.named.is_arch:
            return FairseqBackend.from_arch(
                self.arch, self.vocab_size, self.flags, loading.cpu, loading.fp16, packed=loading.packed
            )
        return FairseqBackend.from_checkpoint(
            self.named.model, loading.data, loading.cpu, loading.fp16, packed=loading.packed
        )

    def as_json(self, value_bytes: int) -> dict[str, Any]:
        """Its facts."""
        widths = {stack: sorted({*getattr(self.shapes[0], f"{stack}_ffn")} - {0}) for stack in ("encoder", "decoder")}
        return {
            "name": self.named.name,
            "arch": self.arch,
            "configuration": CONFIGURATIONS[ARCHS[self.arch][1]].paper if self.arch in ARCHS else None,
            "checkpoint": None if self.named.is_arch else self.named.model,
            "flags": list(self.flags),
            "parameters": self.parameters,
            "weights_mb": self.parameters * value_bytes / 1e6,
            "vocab_size": self.vocab_size,
            "layers": {stack: len(getattr(self.shapes[0], f"{stack}_ffn")) for stack in widths},
            "ffn_dims": {stack: (found[0] if found else None) for stack, found in widths.items()},
        }


def read_names(tokens: Sequence[str]) -> tuple[list[Named], list[str]]:
    """The models among the words of a command line, and the flags of the model with their values.

    Args:
        tokens: what the command's own parser did not know.

    Raises:
        InputError: no model is named, two have one name, a file is missing, or there is no such arch.
    """
    words, flags = _words_and_flags(tokens)
    named = []
    for word in words:
        name, equals, model = word.partition("=")
        if not equals or word in ARCHS or os.path.exists(word):
            name = model = word
        named.append(Named(name, model))
    problems = [] if named else ["name one model or more: an arch (`owf params --list` prints them), or a checkpoint"]
    names = [one.name for one in named]
    problems += [
        f"two models have the name '{name}': give them names of your own, as in `first={name}`"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    problems += [problem for one in named for problem in _not_there(one)]
    if flags and not any(one.is_arch for one in named):
        problems.append(f"flags of a model are for archs, and no arch is named, but got `{' '.join(flags)}`")
    if problems:
        raise InputError(problems)
    return named, flags


def _words_and_flags(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits a command line by what fairseq's parser of the model's flags takes; without flags fairseq isn't needed."""
    if not any(token.startswith("-") for token in tokens):
        return list(tokens), []
    from owf_fairseq.parameters import FlagParser

    arch = next((token.split("=")[-1] for token in tokens if token.split("=")[-1] in ARCHS), next(iter(ARCHS)))
    _, others = FlagParser(arch).parse_known_args(list(tokens))
    unknown = [token for token in others if token.startswith("-")]
    values = {value for flag, value in zip(tokens, tokens[1:], strict=False) if flag in unknown}
    words = [token for token in others if token not in {*unknown, *values}]
    left, flags = list(words), []
    for token in tokens:
        if token in left:
            left.remove(token)
        else:
            flags.append(token)
    return words, flags


def _not_there(named: Named) -> list[str]:
    if not named.model:
        return [f"'{named.name}=' names no model"]
    if named.is_arch:
        return []
    missing = [path for path in named.checkpoints if not os.path.isfile(path)]
    if any(os.sep in path or path.endswith(".pt") for path in missing):
        return [f"there is no checkpoint {path}" for path in missing]
    if not missing:
        return []
    from owf_fairseq.parameters import unknown_arch

    return [f"{unknown_arch(path)}; and there is no checkpoint of this name" for path in missing]


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

    args = Namespace(**given_flags(arch, flags))
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def describe(
    named: Named, flags: Sequence[str], vocab_size: int, data: str | None = None, needs_text: bool = False
) -> Candidate:
    """What a model is, without its weights.

    Args:
        named: an arch, or checkpoints.
        flags: of the model, for an arch.
        vocab_size: for an arch.
        data: folder of the binary data of checkpoints.
        needs_text: whether they must know how text is cut into pieces.

    Raises:
        InputError: with every problem of this model.
    """
    if named.is_arch:
        from owf_fairseq.parameters import count_parameters

        args = arch_flags(named.model, flags)
        count = count_parameters(named.model, vocab_size, flags)
        shapes = (shape_of_flags(args, vocab_size),)
        return Candidate(named, tuple(flags), named.model, shapes, count.total, *_max_lengths([args]), vocab_size)

    stored = _read_all(named, data, needs_text)
    sizes = [one.skeleton.decoder.embed_tokens.num_embeddings for one in stored]
    return Candidate(
        named,
        (),
        stored[0].arch,
        tuple(shape_of_flags(one.args, size) for one, size in zip(stored, sizes, strict=True)),
        sum(parameter.numel() for one in stored for parameter in one.skeleton.parameters()),
        *_max_lengths([one.args for one in stored]),
        sizes[0],
    )


def _read_all(named: Named, data: str | None, needs_text: bool) -> list[StoredModel]:
    """The checkpoints of a model, whose data are there."""
    from owf_fairseq.data.recorded import find_data
    from owf_fairseq.stored_model import read_model

    problems: list[str] = []
    stored = []
    for path in named.checkpoints:
        try:
            stored.append(read_model(path))
            found = find_data(stored[-1].state, path, data)
            if needs_text:
                found.segmentation()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return stored


def _max_lengths(flags: Sequence[Namespace]) -> tuple[int, int]:
    """Pieces that a source and a target may have, beside the end-of-sentence symbol."""
    from fairseq.models.transformer import DEFAULT_MAX_SOURCE_POSITIONS, DEFAULT_MAX_TARGET_POSITIONS

    defaults = {
        "max_source_positions": DEFAULT_MAX_SOURCE_POSITIONS,
        "max_target_positions": DEFAULT_MAX_TARGET_POSITIONS,
    }
    source, target = (
        min(getattr(args, name, None) or default for args in flags) - 1 for name, default in defaults.items()
    )
    return source, target
