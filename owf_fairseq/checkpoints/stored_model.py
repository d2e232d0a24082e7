"""What a checkpoint says of its model: the arch, its flags, which layer uses which block, and the weights by name."""

from __future__ import annotations

import copy
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.transformer import TransformerConfig
from torch import Tensor

from owf_fairseq.checkpoints.checkpoint import PathLike, read_checkpoint
from owf_fairseq.checkpoints.recorded_flags import check_recorded_flags
from owf_fairseq.errors import InputError
from owf_fairseq.flags import flag_name
from owf_fairseq.models import OwfTransformerModel
from owf_fairseq.models.tied_weights import with_all_names
from owf_fairseq.models.transformer import SharingModel, set_defaults
from owf_fairseq.parameters import SizedDictionary
from owf_fairseq.patterns import as_words
from owf_fairseq.plan import Plan, make_plan
from owf_fairseq.sharing import ARCHS


@dataclass(frozen=True)
class StoredModel:
    """A model as a checkpoint holds it.

    Attributes:
        file: the checkpoint's name.
        state: all of it.
        arch: one of ours, or one of fairseq's ``transformer``.
        args: the flags of the model, with the arch's defaults filled in.
        plan: which block every layer uses.
    """

    file: str
    state: dict[str, Any]
    arch: str
    args: Namespace
    plan: Plan

    @property
    def is_ours(self) -> bool:
        """Whether the arch is one of this plugin's, and not one of fairseq's ``transformer``."""
        return self.arch in ARCHS

    @cached_property
    def skeleton(self) -> SharingModel:
        """The model without its weights."""
        return build_skeleton(self.args, self.state["model"], self.file)

    @property
    def parameters(self) -> int:
        """Their number, a shared tensor once."""
        return sum(parameter.numel() for parameter in self.skeleton.parameters())

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """The weights under every name that they have in the model; copies of a shared one stay as they are stored."""
        stored = self.state["model"]
        weights = dict(stored)
        try:
            self.skeleton.upgrade_state_dict(weights)  # fairseq's older names
        except Exception as error:  # fairseq raises what it happens to stumble over
            raise InputError(f"{self.file}: its flags and its weights describe no model: {error}") from error
        # 0.12.2 puts uninitialised memory into this buffer, which only tells a module its device
        buffers = [name for name in weights if name.endswith("embed_positions._float_tensor")]
        weights |= {name: stored[name] for name in buffers if name in stored}
        weights = {name: tensor for name, tensor in weights.items() if name not in buffers or name in stored}
        return with_all_names(self.skeleton, weights)

    @cached_property
    def faults(self) -> list[str]:
        """Where the weights are not those of the model that the flags describe, a line each."""
        skeleton = self.skeleton
        shapes = {name: tuple(p.shape) for name, p in skeleton.named_parameters(remove_duplicate=False)}
        known = {*shapes, *(name for name, _ in skeleton.named_buffers(remove_duplicate=False))}
        faults = [f"lacks {name}" for name, _ in skeleton.named_parameters() if name not in self.weights]
        for name, tensor in self.weights.items():
            if name not in known and not name.endswith(_IGNORED):
                faults.append(f"has {name}, which the model has not")
            elif name in shapes and tuple(tensor.shape) != shapes[name]:
                there, wanted = ("x".join(map(str, shape)) for shape in (tensor.shape, shapes[name]))
                faults.append(f"has {name} of the shape {there}, not {wanted}")
        diverged = [name for name in shapes if name in self.weights and not self.weights[name].isfinite().all()]
        if diverged:
            faults.append(
                f"has numbers that are infinite or none (NaN) in {len(diverged)} of its weights, among them "
                f"{diverged[0]}: its training has diverged; take an earlier checkpoint"
            )
        return faults

    def check(self) -> None:
        """Refuses a checkpoint that does not hold the model that it says.

        Raises:
            InputError: with its first faults.
        """
        if self.faults:
            more = [f"... and {len(self.faults) - 5} more"] if len(self.faults) > 5 else []
            raise InputError(f"{self.file} {fault}" for fault in [*self.faults[:5], *more])

    def build(self, source: Dictionary, target: Dictionary) -> SharingModel:
        """The model with its weights, ready to decode: in eval mode, on the CPU.

        Args:
            source, target: dictionaries; one object where both languages have the same, as fairseq wants it for shared
                embeddings.

        Raises:
            InputError: the checkpoint does not hold the model that it says, or the dictionaries are not its own.
        """
        self.check()
        self.check_dictionaries(source, target)
        try:
            model = build_model(self.args, source, target)
        except (AssertionError, ValueError) as error:  # two dictionaries where embeddings are shared
            raise InputError(f"{self.file} can't be built with the dictionaries of its data: {error}") from error
        weights = {name: tensor for name, tensor in self.weights.items() if not name.endswith(_IGNORED)}
        model.load_state_dict(weights, strict=False)  # strictly checked above, buffers of fairseq's own aside
        model.eval()
        return model

    def check_dictionaries(self, source: Dictionary, target: Dictionary) -> None:
        """Refuses dictionaries of another size than the embeddings.

        Raises:
            InputError: with those that are.
        """
        sizes = [self.weights[name].shape[0] for name in _VOCABULARIES if name in self.weights]
        wrong = [
            f"{self.file} has {size:,} symbols of the {side} language, but its dictionary has {len(dictionary):,}: the "
            "data are not those that it was trained on"
            for side, size, dictionary in (("source", sizes[0], source), ("target", sizes[-1], target))
            if size != len(dictionary)
        ]
        if wrong:
            raise InputError(wrong)


_IGNORED = ("embed_positions._float_tensor", "embed_positions.weights")
"""Buffers of fairseq's sinusoidal positions that some versions store, and that all ignore."""

FRESH_START = {"version": 2, "epoch": 1, "iterations_in_epoch": 0, "shuffle": True}
"""The state of fairseq's data iterator before the first update."""


def without_further_names(weights: Mapping[str, Tensor], further: Mapping[str, Sequence[str]]) -> dict[str, Tensor]:
    """The weights with each shared one under its first name; no two of the rest are the same piece of memory."""
    dropped = {name for names in further.values() for name in names}
    kept: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in weights.items():
        if name not in dropped:
            kept[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
            seen.add(tensor.data_ptr())
    return kept


def read_model(path: PathLike) -> StoredModel:
    """Reads a checkpoint; see ``read_checkpoint``.

    Raises:
        InputError: it cannot be read, or its model is none of ours and no ``transformer`` of fairseq's.
    """
    return describe_state(read_checkpoint(path), str(path))


def describe_state(state: dict[str, Any], file: str) -> StoredModel:
    """What a checkpoint, already read, says of its model.

    Raises:
        InputError: its model is none of ours and no ``transformer`` of fairseq's, or its flags describe none.
    """
    flags = model_flags(state)
    arch = flags.get("arch") or flags.get("_name")
    if not isinstance(arch, str):
        raise InputError(f"{file} does not say which arch it is of")
    if arch not in ARCHS and ARCH_MODEL_NAME_REGISTRY.get(arch) != "transformer":
        raise InputError(
            f"{file} is of the arch '{arch}': only this plugin's (`owf params --list`) and fairseq's `transformer` "
            "with its named sizes are known here"
        )
    check_recorded_flags(arch, flags, file)
    args = Namespace(**copy.deepcopy({name: value for name, value in flags.items() if value is not None}))
    args.decoder_only = ARCH_MODEL_REGISTRY[arch].decoder_only if arch in ARCHS else False
    args.arch = args._name = arch
    try:
        ARCH_CONFIG_REGISTRY[arch](args)
        set_defaults(args)
        plan = make_plan(args)
    except InputError as error:
        raise InputError(f"{file}: {problem}" for problem in error.problems) from error
    except (TypeError, ValueError) as error:  # a text where a number belongs
        raise InputError(f"{file}: its flags describe no model: {error}") from error
    return StoredModel(file, state, arch, args, plan)


def model_flags(state: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of the model as they are stored: by fairseq-train with all others, by fairseq-hydra-train alone."""
    flags = state["cfg"].get("model") if state.get("cfg") else state.get("args")
    return dict(flags) if isinstance(flags, Mapping) else dict(vars(flags or Namespace()))


def build_skeleton(args: Namespace, weights: Mapping[str, Tensor], file: str) -> SharingModel:
    """The model that the flags describe, on torch's meta device: names and shapes, no numbers.

    Args:
        args: its flags. A model of fairseq's ``transformer`` is built as our individual one, which has its names.
        weights: those of the embeddings say how large the vocabularies are.
        file: named in the error.

    Raises:
        InputError: fairseq cannot build it.
    """
    sizes = [weights[name].shape[0] for name in _VOCABULARIES if name in weights and weights[name].dim() == 2]
    if not sizes or 0 in sizes:
        raise InputError(f"{file} has no matrix of embeddings ({' or '.join(_VOCABULARIES)}): it cannot be read here")
    source = SizedDictionary(sizes[0])
    target = source if sizes[-1] == sizes[0] else SizedDictionary(sizes[-1])
    try:
        with torch.device("meta"):
            return build_model(args, source, target)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # fairseq raises what it happens to stumble over
        reason = str(error) or type(error).__name__
        raise InputError(f"{file}: its flags and its weights describe no model: {reason}") from error


def build_model(args: Namespace, source: Dictionary, target: Dictionary) -> SharingModel:
    """fairseq's way to a model, without a task and without files of pretrained embeddings, which need not be here."""
    args = copy.copy(args)
    args.encoder_embed_path = args.decoder_embed_path = None
    # plain fairseq's transformer is our individual one
    model: type[SharingModel] = ARCH_MODEL_REGISTRY[args.arch] if args.arch in ARCHS else OwfTransformerModel
    return model.build_model(args, SimpleNamespace(source_dictionary=source, target_dictionary=target))


def build_with_seed(args: Namespace, source: Dictionary, target: Dictionary, seed: int) -> SharingModel:
    """``build_model`` with the random weights that a seed gives; torch's own random numbers go on as before."""
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        return build_model(args, source, target)
    finally:
        torch.random.set_rng_state(state)


_VOCABULARIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


def seed_of(state: Mapping[str, Any]) -> int | None:
    """The seed that a training began with; None if the checkpoint doesn't say."""
    common = (state.get("cfg") or {}).get("common") or {}
    seed = {**model_flags(state), **common}.get("seed")
    return seed if isinstance(seed, int) and 0 <= seed < 2**63 else None


def updates_of(state: Mapping[str, Any]) -> int:
    """After how many updates a checkpoint was written."""
    return int((state.get("optimizer_history") or [{}])[-1].get("num_updates", 0))


def all_flag_defaults(arch: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values of all flags of the model, by name, where only the given ones are given."""
    args = Namespace(**(given or {}))
    ARCH_CONFIG_REGISTRY[arch](args)
    set_defaults(args)
    flags = {**_fairseqs_defaults(), **vars(args)}
    if flags["share_all_embeddings"]:
        flags["share_decoder_input_output_embed"] = True  # fairseq sets it when it builds the model
    return {name: value for name, value in flags.items() if name not in ("arch", "_name")}


@cache
def _fairseqs_defaults() -> dict[str, Any]:
    parser = ArgumentParser(add_help=False)
    gen_parser_from_dataclass(parser, TransformerConfig(), delete_default=False, with_prefix="")
    return vars(parser.parse_args([]))


def differing_flags(args: Namespace, arch: str) -> dict[str, Any]:
    """The flags that give this model with this arch, by name: those that are not its defaults.

    ``--decoder-embed-dim`` is ``--encoder-embed-dim`` where it is not given, and is left out where it is just that.
    """
    defaults = all_flag_defaults(arch)
    wanted = {name: getattr(args, name, value) for name, value in defaults.items()}
    if wanted["share_all_embeddings"]:
        wanted["share_decoder_input_output_embed"] = True
    given = {name: value for name, value in wanted.items() if value is not None}
    needed = {name: value for name, value in given.items() if value != defaults[name]}
    for name in list(needed):
        fewer = {other: value for other, value in needed.items() if other != name}
        try:
            result = all_flag_defaults(arch, fewer)
        except InputError:  # the rest makes no sense without it
            continue
        if all(result[flag] == value for flag, value in given.items()):
            needed = fewer
    return needed


def typed(flags: Mapping[str, Any]) -> list[str]:
    """Flags as they are typed: ``--share-all-embeddings``, ``--encoder-ffn cycle-2``."""
    return [
        " ".join(as_words(flag_name(name), *([] if value is True else [str(value)]))) for name, value in flags.items()
    ]
