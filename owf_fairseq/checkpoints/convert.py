"""A trained model of one configuration as the start of another: tied, untied, widened, dropped, or plain fairseq's."""

from __future__ import annotations

import copy
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_CONFIG_REGISTRY
from omegaconf import OmegaConf

from owf_fairseq import USER_DIR
from owf_fairseq.checkpoints.convert_blocks import INITS, BlockConverter, Step
from owf_fairseq.checkpoints.stored_model import (
    FRESH_START,
    StoredModel,
    all_flag_defaults,
    build_skeleton,
    differing_flags,
    typed,
    without_further_names,
)
from owf_fairseq.errors import InputError
from owf_fairseq.files.fingerprint import known_data
from owf_fairseq.flags import FLAG_DEFAULTS, PATTERN_FLAGS, as_text, flag_name
from owf_fairseq.models.tied_weights import tied_names
from owf_fairseq.parameters import given_flags, unknown_arch
from owf_fairseq.patterns import Pattern, pattern_text
from owf_fairseq.plan import make_plan
from owf_fairseq.sharing import ARCHS, SIZES, arch_name, is_decoder_only

COMMAND = "owf convert"
_WIDTHS = ("encoder_ffn_embed_dim", "decoder_ffn_embed_dim")
_SIZES = tuple(
    f"{stack}_{name}" for name in ("layers", "embed_dim", "attention_heads") for stack in ("encoder", "decoder")
)
_ADDED_WIDTH = 8
"""Of an FFN that stands for none in plain fairseq's model, where nothing else says how wide it is."""


@dataclass(frozen=True)
class Conversion:
    """A converted checkpoint.

    Attributes:
        state: to be written.
        arch: of the result; ``transformer`` for plain fairseq.
        flags: of the result, where they differ from its arch's, as they are typed.
        steps: what was done to the blocks.
    """

    state: dict[str, Any]
    arch: str
    flags: list[str]
    steps: list[Step]

    @property
    def exact(self) -> bool:
        """Whether the result computes what the source did."""
        return all(step.exact for step in self.steps)


def convert(source: StoredModel, to: str, flags: Sequence[str] = (), init: str = "mean") -> Conversion:
    """Turns a model into one that shares, drops or widens other blocks.

    FFNs that become one are combined by ``init`` (the algebra is told in ``combine``); those of equal values count
    once. A target that is wider than that is filled up with units that change nothing, so that both ways fit the One
    Wide FFN: its (N_enc + N_dec) * d_ff units hold, with ``concat``, the N_enc FFNs of the encoder, and N_dec * d_ff
    units for training to use. The decoder's FFNs are dropped with the layers' other traces of them.

    Optimizer state is dropped and training starts at its first update.

    Args:
        source: the model.
        to: an arch; ``individual`` for every shared block untied; ``fairseq`` for fairseq's own ``transformer``, in
            which a dropped FFN is one whose output is 0.
        flags: of the target, as fairseq-train takes them: patterns and widths of FFNs. Others must be the source's.
        init: ``mean`` or ``concat``.

    Raises:
        InputError: with every problem at once.
    """
    if init not in INITS:
        raise InputError(f"`--init` must be one of {', '.join(INITS)}, but is '{init}'")
    source.check()
    args = target_args(source, to, flags)
    plan = make_plan(args)
    blocks = BlockConverter(source, args, plan, init)
    skeleton = build_skeleton(args, source.weights, source.file)
    weights = blocks.weights
    wrong = [name for name, p in skeleton.named_parameters() if name not in weights or weights[name].shape != p.shape]
    if wrong:
        raise InputError(f"{source.file} cannot become {args.arch}: {', '.join(wrong[:5])} would not fit")
    if to != "fairseq":
        weights = without_further_names(weights, tied_names(skeleton))
    state = {
        "args": None,
        "cfg": _configuration(source, args, plain=to == "fairseq"),
        "model": weights,
        "criterion": source.state.get("criterion"),
        "optimizer_history": [{**_history(source.state), "lr_scheduler_state": {}, "num_updates": 0}],
        "task_state": source.state.get("task_state", {}),
        "extra_state": {
            "train_iterator": dict(FRESH_START),
            "val_loss": None,
            "converted_from": {"file": source.file, "arch": source.arch, "init": init},
            **known_data(source.state),
        },
    }
    return Conversion(state, args.arch, typed(differing_flags(args, args.arch)), blocks.steps)


def target_args(source: StoredModel, to: str, flags: Sequence[str] = ()) -> Namespace:
    """The flags of the target: the arch's blocks and widths, and all else as in the source.

    Raises:
        InputError: no such arch or flag; or the target differs in something that cannot be converted.
    """
    varied = {*FLAG_DEFAULTS, *_WIDTHS, "arch", "_name"}
    kept = {name: value for name, value in vars(source.args).items() if name not in varied}
    if to == "fairseq" and source.args.decoder_only:
        raise InputError(f"`--to fairseq`: {source.file} is of a decoder-only model, which plain fairseq has not")
    if to in ("individual", "fairseq"):
        if flags:
            raise InputError(f"`--to {to}` takes no flags of a model, but got `{' '.join(flags)}`")
        return _untied(source, kept, plain=to == "fairseq")
    if to not in ARCHS:
        raise InputError(f"`--to` must be an arch, individual or fairseq, but {unknown_arch(to)}")
    if is_decoder_only(to) != source.args.decoder_only:
        raise InputError(
            f"`--to` {to} and {source.file} ({source.arch}) are not of one kind: one of them is decoder-only"
        )
    given = given_flags(to, flags)
    args = Namespace(**{name: value for name, value in kept.items() if name not in _SIZES}, arch=to, _name=to)
    problems = []
    for name, value in given.items():
        if name in kept and name not in _SIZES and value != kept[name]:
            problems.append(
                f"`{flag_name(name)}` is {kept[name]} in {source.file}: a conversion changes which blocks are shared "
                "or dropped and how wide FFNs are, and nothing else; give it to fairseq-train"
            )
        setattr(args, name, value)
    if problems:
        raise InputError(problems)
    ARCH_CONFIG_REGISTRY[to](args)
    for name in _SIZES if not source.args.decoder_only else [name for name in _SIZES if name.startswith("decoder")]:
        value, here = getattr(args, name), getattr(source.args, name)
        if value != here:
            flag = flag_name(name)
            problems.append(
                f"`{flag}` is {value} in {to}, but {here} in {source.file}: give `{flag} {here}`, or an arch of that "
                "size"
            )
    if problems:
        raise InputError(problems)
    return args


def _untied(source: StoredModel, kept: dict[str, Any], *, plain: bool) -> Namespace:
    """The flags of the model with a block for every layer; dropped FFNs stay dropped, which plain fairseq cannot."""
    size = next(
        (
            name
            for name, size in SIZES.items()
            if [size.encoder_layers, size.decoder_layers, size.embed_dim, size.embed_dim, size.heads, size.heads]
            == [kept[name] for name in _SIZES]
        ),
        "decoder_only" if source.args.decoder_only else "base",
    )
    arch = "transformer" if plain else arch_name(size, "individual")
    args = Namespace(**{**kept, **FLAG_DEFAULTS, "arch": arch, "_name": arch})  # _name is among our flags' fields
    for name in () if plain else PATTERN_FLAGS:
        stack, _, kind = name.partition("_")
        setattr(
            args, name, _as_individual(source.plan.ffn_of(stack)[0] if kind == "ffn" else getattr(source.plan, name))
        )
    for stack, name in zip(("encoder", "decoder"), _WIDTHS, strict=True):
        used = [width for width in source.plan.ffn_of(stack)[1] if width]
        # plain fairseq has one width for all: the widest
        setattr(args, name, max(used, default=_ADDED_WIDTH if plain else getattr(source.args, name)))
        if len(set(used)) > 1 and not plain:
            setattr(args, f"{stack}_ffn_widths", as_text(used))
    if source.args.decoder_only:
        args.encoder_ffn_embed_dim = args.decoder_ffn_embed_dim  # which fairseq reads of every model
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


def _as_individual(pattern: Pattern) -> str:
    """A block for every layer that has one."""
    if None not in pattern:
        return "individual"
    if pattern.count(None) == len(pattern):
        return "none"
    blocks = count()
    return pattern_text([None if number is None else next(blocks) for number in pattern])


def _history(state: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of its optimizer; one that was stripped for publication says nothing."""
    nothing = {"criterion_name": "", "optimizer_name": ""}
    return {**nothing, **(state.get("optimizer_history") or [{}])[-1]}


def _configuration(source: StoredModel, args: Namespace, *, plain: bool) -> dict[str, Any]:
    """The ``cfg`` of the result: the source's, with the flags of the new model."""
    cfg = copy.deepcopy(source.state["cfg"])
    if not cfg:  # as fairseq wrote it until 0.9
        cfg = OmegaConf.to_container(convert_namespace_to_omegaconf(source.state["args"]), enum_to_str=True)
    user_dir = None if plain else USER_DIR
    cfg.setdefault("common", {})["user_dir"] = args.user_dir = user_dir
    if not plain:
        cfg["model"] = args
        return cfg
    # A Namespace is nothing that torch reads under weights_only until the plugin allows it; a dict it reads, and
    # fairseq takes one for flags too, if every one is there.
    known = {*all_flag_defaults("transformer"), "arch", "_name"} - (FLAG_DEFAULTS.keys() - {"_name"})
    flags = {**all_flag_defaults("transformer"), **vars(args)}
    cfg["model"] = {name: value for name, value in flags.items() if name in known}
    return cfg
