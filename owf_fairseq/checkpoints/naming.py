"""What a model is called: by the blocks that it has, whatever arch and flags made them."""

from __future__ import annotations

from argparse import Namespace

from owf_fairseq.errors import InputError
from owf_fairseq.flags import FLAG_DEFAULTS
from owf_fairseq.plan import make_plan
from owf_fairseq.sharing import ARCHS, SIZES, configuration_of, wide_ffn_dim

_PLAIN = {name: default for name, default in FLAG_DEFAULTS.items() if name not in ("_name", "ffn_layer_norm")}


def named_arch(args: Namespace, arch: str) -> str | None:
    """The named arch whose blocks a model has: of the size's name that it was made with, whatever its numbers are.

    Of two configurations with the same blocks (SharedEncNoDec, One Wide FFN), the wide one has just its width.

    Args:
        args: the flags of the model, with the arch's defaults filled in.
        arch: that the model was made with.

    Returns:
        None if there is none, or the model is not this plugin's.
    """
    if arch not in ARCHS:
        return None
    size = ARCHS[arch][0]
    plan = make_plan(args)
    # one width for a stack, as all named archs have it; a list of different ones is no candidate's
    widths = {f"{stack}_ffn_embed_dim": max(plan.ffn_of(stack)[1], default=0) for stack in ("encoder", "decoder")}
    width = widths[f"{SIZES[size].stacks[0]}_ffn_embed_dim"]
    given = {**vars(args), **_PLAIN, "ffn_per_layer": "norm" if plan.per_layer.norm else ""}
    given |= {name: largest for name, largest in widths.items() if largest}
    wide = wide_ffn_dim(SIZES[size].ffn_dim, args.encoder_layers, args.decoder_layers)
    found = None
    for name in ARCHS:
        if ARCHS[name][0] != size:
            continue
        configuration = configuration_of(name)
        try:
            same = make_plan(Namespace(**{**given, **configuration.flags})) == plan
        except InputError:  # the layers do not allow it
            continue
        if same and configuration.wide and width == wide:
            return name
        if same and not configuration.wide:
            found = found or name
    return found


def configuration_label(configuration: str | None, arch: str) -> str:
    """A configuration for a table, also where the paper has no name for it."""
    return configuration or ("other" if arch in ARCHS else "plain fairseq")
