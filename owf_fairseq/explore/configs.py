"""Configs that train the layouts of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from owf_fairseq.errors import InputError
from owf_fairseq.explore.layouts import Layout
from owf_fairseq.files.folders import output_folder
from owf_fairseq.files.lines import PathLike, write_lines
from owf_fairseq.paper import rows as paper
from owf_fairseq.patterns import pattern_text
from owf_fairseq.sharing import SIZES
from owf_fairseq.training.config import BASE, DATASETS, find_config

COMMAND = "owf explore"
FLAG = "--write-configs"


def default_base(size: str, vocab_size: int) -> str:
    """The config that the layouts of a size are based on: of the paper's data with that vocabulary, or a small one."""
    if SIZES[size].embed_dim < SIZES["base"].embed_dim:
        return "quickstart/_base"
    pairs = {rows: pair for pair, rows in paper.VOCAB_SIZES.items()}
    return f"{DATASETS[pairs.get(vocab_size, 'en-de')]}/_base"


def write_configs(folder: PathLike, base: str, layouts: Iterable[tuple[Layout, list[str]]]) -> list[str]:
    """Writes a config for each layout, and replaces those that an earlier call wrote there.

    Args:
        folder: that is made.
        base: the config that they are based on, as ``owf train`` takes it.
        layouts: each with sentences on it, for the head of its file.

    Returns:
        The names of the files.

    Raises:
        InputError: the folder holds other files, or there is no such base.
    """
    found = {layout_name(layout): (layout, said) for layout, said in layouts}
    # the way from the folder, whatever links lead to it
    place = os.path.relpath(os.path.realpath(base_file(base)), os.path.realpath(folder))
    with output_folder(folder, COMMAND, flag=FLAG) as temporary:
        for name, (layout, said) in found.items():
            lines = [*(f"# {one}" for one in said), f"{BASE}: {_quoted(place)}", *_settings(layout)]
            lines.append(f"save-dir: runs/explore/{name}")
            write_lines(temporary / f"{name}.yaml", lines)
    return [f"{name}.yaml" for name in found]


def base_file(base: str) -> Path:
    """The file of a config that others are based on.

    Raises:
        InputError: there is none.
    """
    try:
        return find_config(base)
    except InputError as error:
        raise InputError(
            f"`--config-base` must be a config, a file FILE.yaml or DATASET/_base, but there is no '{base}'"
        ) from error


def layout_name(layout: Layout) -> str:
    """What a layout's config is called: ``big_enc_shared_49152_dec_none``."""
    words = [layout.size]
    for stack in layout.numbers.stacks:
        numbers = list(layout.ffn(stack))
        pattern = layout.encoder_ffn if stack == "encoder" else layout.decoder_ffn
        is_named = pattern != pattern_text(numbers)
        word = pattern.replace("-", "_") if is_named else pattern.replace("-", "x").replace(",", "-")
        widths = [str(int(width)) for width in layout.widths(stack)]
        words += [stack[:3], word, *(widths if len(set(widths)) > 1 else widths[:1])]
    if layout.share_encoder_decoder_ffn:
        words.append("one_ffn")
    for kind in ("encoder_self_attn", "decoder_self_attn", "decoder_cross_attn"):
        pattern = getattr(layout, kind)
        if pattern != "individual":
            words += [kind.removesuffix("_attn"), pattern.replace("-", "x").replace(",", "-")]
    if terms := str(layout.per_layer):
        words.append(terms.replace(",", "_").replace("-", ""))
    return "_".join(words)


def _settings(layout: Layout) -> Iterator[str]:
    yield f"arch: {layout.arch}"
    for name, value in layout.settings().items():
        yield f"{name}: {_quoted(value)}"


def _quoted(value: str) -> str:
    """A value as YAML reads it back: in quotes where it has what YAML could take for its own."""
    plain = value[:1].isalnum() or value[:2] in ("..", "/")
    return value if plain and not set(value) & set(":#'\"") else "'" + value.replace("'", "''") + "'"
