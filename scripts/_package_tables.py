"""Renderers of what follows from the package alone, as Markdown tables; see ``render_tables.py``."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Callable
from typing import Any

from owf_fairseq.tables import markdown_table

FROM_PACKAGE: dict[str, Callable[[str], str]] = {}


def from_package(name: str) -> Callable:
    """Registers a renderer that takes the command alone."""
    return lambda render: FROM_PACKAGE.setdefault(name, render)


def _printed(command: str, index: int) -> str:
    """A table of what an `owf` command prints with `--markdown`."""
    from owf_fairseq import cli

    program, *words = shlex.split(command)
    if program != "owf":
        raise ValueError(f"a table of the package is made by an `owf` command, not by `{command}`")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = cli.main([*words, "--markdown"])
    if status:
        raise ValueError(f"`{command} --markdown` ended with status {status}")
    return re.findall(r"(?:^\|.*\n?)+", printed.getvalue(), re.MULTILINE)[index].rstrip("\n")


@from_package("printed")
def printed_first(command: str) -> str:
    """The first table of the command."""
    return _printed(command, 0)


@from_package("printed_second")
def printed_second(command: str) -> str:
    """The second table of the command."""
    return _printed(command, 1)


@from_package("patterns")
def patterns_table(_: str) -> str:
    """The patterns, for six layers."""
    from owf_fairseq.patterns import STRATEGIES, make_pattern

    rows = []
    for strategy in STRATEGIES.values():
        numbers = make_pattern(strategy.spelling.replace("-M", "-2"), 6)
        layout = " ".join("–" if one is None else str(one) for one in numbers)
        meaning = " ".join((strategy.layout.__doc__ or "").split("\n\n")[0].split()).rstrip(".")
        rows.append([f"`{strategy.spelling}`", layout, meaning])
    return markdown_table(["pattern", "6 layers (M = 2)", "meaning"], rows, words=(0, 1, 2))


@from_package("sizes")
def sizes_table(_: str) -> str:
    """The named sizes."""
    from owf_fairseq.sharing import SIZES

    rows = [
        [
            f"`{name}`",
            " + ".join(str(getattr(size, f"{stack}_layers")) for stack in size.stacks),
            *(f"{size.embed_dim:,}", f"{size.ffn_dim:,}", f"{size.wide_ffn_dim:,}", str(size.heads)),
        ]
        for name, size in SIZES.items()
    ]
    return markdown_table(["size", "layers", "d_model", "d_ff", "One Wide FFN's d_ff'", "heads"], rows)


def _flags_of(configuration: Any, size: Any) -> str:
    flags = [
        "`--" + name.replace("_", "-") + ("`" if value is True else f" {value}`")
        for name, value in configuration.flags.items()
        if value != "individual"
    ]
    layers = "(N_enc + N_dec)" if size.encoder_layers else "N"
    return ", ".join(flags) + (f"; d_ff' = {layers} × d_ff" if configuration.wide else "")


def _configurations(size: str) -> str:
    from owf_fairseq.paper.rows import VOCAB_SIZES
    from owf_fairseq.parameters import count_parameters
    from owf_fairseq.sharing import SIZES, arch_name

    rows = []
    for name, configuration in SIZES[size].configurations.items():
        count = count_parameters(arch_name(size, name), VOCAB_SIZES["en-de"])
        rows.append([configuration.paper, f"`{name}`", _flags_of(configuration, SIZES[size]), f"{count.total:,}"])
    header = ["the paper", "configuration", "flags that it stands for", f"parameters (`owf_{size}`)"]
    return markdown_table(header, rows, words=(0, 1, 2))


@from_package("configurations")
def configurations_table(_: str) -> str:
    """The paper's encoder-decoder configurations."""
    return _configurations("big")


@from_package("decoder_only_configurations")
def decoder_only_table(_: str) -> str:
    """Those of the decoder-only model."""
    return _configurations("decoder_only")


@from_package("terms")
def terms_table(_: str) -> str:
    """The paper's terms of the FFN and the architectures of size big, in short."""
    from owf_fairseq.paper.rows import VOCAB_SIZES
    from owf_fairseq.parameters import count_parameters
    from owf_fairseq.sharing import CONFIGURATIONS, arch_name

    rows = []
    for name, configuration in CONFIGURATIONS.items():
        if name.startswith(("sequence", "cycle", "attention")):
            continue
        count = count_parameters(arch_name("big", name), VOCAB_SIZES["en-de"])
        rows.append([configuration.paper, f"`{arch_name('big', name)}`", f"{count.total / 1e6:.0f} M"])
    return markdown_table(["the paper", "architecture", "parameters"], rows, words=(0, 1))


@from_package("paper_one_wide")
def paper_table(_: str) -> str:
    """What the paper prints of One Wide FFN."""
    from owf_fairseq.paper.rows import rows_of_table
    from owf_fairseq.tables import DAGGER, with_deviation

    rows = []
    for row in rows_of_table("one_wide"):
        bleu, chrf = (
            f"{getattr(row, metric)}" + (f" {DAGGER}" if getattr(row, f"significant_{metric}") else "")
            for metric in ("bleu", "chrf")
        )
        speed = with_deviation(row.tokens_per_s, row.tokens_per_s_sd) if row.tokens_per_s else "-"
        rows.append([row.row, bleu, chrf, str(row.comet), speed, f"{row.params_millions} M"])
    return markdown_table(["the paper's row", "BLEU", "chrF", "COMET", "tokens/s", "parameters"], rows)


@from_package("configs")
def configs_table(_: str) -> str:
    """The folders of configs."""
    from owf_fairseq.training.config import CONFIGS, config_names
    from owf_fairseq.training.run import plan

    about = {
        "wmt22_en_de": "WMT22 English-German",
        "wmt16_en_ro": "WMT16 English-Romanian",
        "multilingual": "ten languages, 90 directions",
        "multi30k": "Multi30k English-German",
        "quickstart": "the corpus of `scripts/quickstart.sh`",
        "iwslt14_de_en": "IWSLT14 German-English",
    }
    rows = []
    for folder, data in about.items():
        names = [name for name in config_names() if name.startswith(f"{folder}/")]
        training = plan(names[0], environment={})
        assert training.batch is not None
        sizes = sorted(
            path.stem for path in (CONFIGS / folder).glob("[!_]*.yaml") if f"owf_{path.stem}" in _individual()
        )
        rows.append(
            [
                f"`{folder}`",
                data,
                ", ".join(f"`{size}`" for size in sizes),
                f"{training.batch.wanted:,} tokens",
                f"{training.args.max_update:,}",
            ]
        )
    return markdown_table(["folder", "data", "sizes", "an update", "updates"], rows, words=(0, 1, 2))


def _individual() -> set[str]:
    from owf_fairseq.sharing import SIZES

    return {f"owf_{size}" for size in SIZES}
