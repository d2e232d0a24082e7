"""Named architectures, registered in a loop: a size is numbers, a configuration is flags (both in ``sharing.py``)."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairseq.models import register_model_architecture

from owf_fairseq.compat import for_any_config, is_parsing
from owf_fairseq.errors import InputError
from owf_fairseq.flags import READ_OF_EVERY_MODEL
from owf_fairseq.models import decoder_only as _decoder_only  # noqa: F401  registers the model
from owf_fairseq.models.transformer import set_defaults
from owf_fairseq.plan import make_plan
from owf_fairseq.sharing import ARCHS, SIZES, Configuration, Size, configuration_of, is_decoder_only, wide_ffn_dim


def architecture(size: Size, configuration: Configuration) -> Callable[[Any], None]:
    """fairseq's arch function: it sets what the user did not, and so the user's flags win."""

    def set_flags(args: Namespace) -> None:
        def default(name: str, value: object) -> None:
            setattr(args, name, getattr(args, name, value))

        args.decoder_only = not size.encoder_layers
        if args.decoder_only:
            default("share_all_embeddings", True)  # one matrix for source, target and output: paper, Section 3
        default("encoder_layers", size.encoder_layers)
        default("decoder_layers", size.decoder_layers)
        default(f"{size.stacks[0]}_embed_dim", size.embed_dim)
        default("decoder_embed_dim", getattr(args, "encoder_embed_dim", size.embed_dim))
        if configuration.wide:
            wide = wide_ffn_dim(size.ffn_dim, args.encoder_layers, args.decoder_layers)
            default(f"{size.stacks[0]}_ffn_embed_dim", wide)
        for stack in size.stacks:
            default(f"{stack}_ffn_embed_dim", size.ffn_dim)
            default(f"{stack}_attention_heads", size.heads)
        for name, value in configuration.flags.items():
            default(name, value)
        for name, usual in READ_OF_EVERY_MODEL.items() if args.decoder_only else ():
            default(f"decoder_{name}", usual)
            default(f"encoder_{name}", getattr(args, f"decoder_{name}"))
        set_defaults(args)
        check_flags(args)

    return for_any_config(set_flags)


def check_flags(args: Namespace) -> None:
    """Refuses flags that describe no model: on the command line before anything else is done, as argparse would.

    Raises:
        InputError: with every problem, outside a command line.
    """
    try:
        make_plan(args)
    except InputError as error:
        if not is_parsing():
            raise
        for problem in error.problems:
            print(f"{Path(sys.argv[0]).name}: error: {problem}", file=sys.stderr)
        raise SystemExit(2) from error


for arch, (size_name, _) in ARCHS.items():
    model_name = "owf_decoder_only" if is_decoder_only(arch) else "owf_transformer"
    register_model_architecture(model_name, arch)(architecture(SIZES[size_name], configuration_of(arch)))
