"""Configs: YAML files whose keys are fairseq-train's flags, and the names of those for the paper's rows.

The one key that is no flag of fairseq's is ``base``: another config, whose settings hold where the file has none.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import yaml

from owf_fairseq import USER_DIR
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.lines import read_lines
from owf_fairseq.paper.rows import BATCH_SIZES_TABLE, SIMILARITY_TABLE, PaperRow, rows, rows_of_table
from owf_fairseq.sharing import ARCHS, SIZES, arch_name

CONFIGS = Path(USER_DIR, "configs")
"""The package's own configs. In the checkout, a link to the folder ``configs`` beside the package."""

BASE = "base"

DATASETS = {"en-de": "wmt22_en_de", "en-ro": "wmt16_en_ro", "multi": "multilingual"}
"""The folder of configs for each of the paper's pairs of languages."""

SMALL_DATASETS = {"multi30k": "small", "quickstart": "small", "iwslt14_de_en": "iwslt"}
"""Folders of configs for other data, and their size: the rows of the paper's Transformer Big, English-German, at it."""


@dataclass(frozen=True)
class Setting:
    """The value of a flag as it is written, elements of a list with commas between, and where it is written."""

    value: str
    where: str


def find_config(name: str) -> Path:
    """The file that a user means: a path that ends in ``.yaml``, or ``DATASET/NAME`` of the package's own.

    Raises:
        InputError: there is none.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else CONFIGS / f"{name}.yaml"
    if path.is_file():
        return path
    near = difflib.get_close_matches(name, config_names(), n=3, cutoff=0.5)
    suggestion = f"did you mean {' or '.join(near)}? " if near else ""
    raise InputError(
        f"there is no config '{name}': {suggestion}CONFIG is the first word, a file FILE.yaml, or DATASET/NAME as in "
        f"{CONFIGS}"
    )


def config_names() -> list[str]:
    """Every config of the package that can be trained, as ``DATASET/NAME``."""
    files = sorted(CONFIGS.glob("*/[!_]*.yaml"))
    return [file.relative_to(CONFIGS).with_suffix("").as_posix() for file in files]


def read_config(path: Path, derived: tuple[Path, ...] = ()) -> dict[str, Setting]:
    """Reads a config and all that it is based on.

    Args:
        path: the file.
        derived: the files that are based on it.

    Returns:
        Settings by their flags, without dashes in front: first those of the base, in the order of the files.

    Raises:
        InputError: with every problem of all the files; it names the file and the line.
    """
    problems: list[str] = []
    own = _read_file(path, problems)
    base = own.pop(BASE, None)
    inherited: dict[str, Setting] = {}
    if base is not None:
        file = path.parent / base.value
        if file.resolve() in {one.resolve() for one in (path, *derived)}:
            problems.append(f"{base.where}: `{BASE}` {base.value} leads back to this file")
        elif not file.is_file():
            problems.append(f"{base.where}: `{BASE}` must be a config, relative to this file, but {file} is not there")
        else:
            inherited = collect(problems, lambda: read_config(file, (path, *derived))) or {}
    if problems:
        raise InputError(problems)
    return inherited | own


def _read_file(path: Path, problems: list[str]) -> dict[str, Setting]:
    """The settings of one file, ``base`` among them; what is wrong in it is added to the problems."""
    try:
        # YAML's own types are not wanted: 7e-4 would be a text and `no`, a language, a truth value
        root = yaml.compose("\n".join(read_lines(path)), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        problems.append(f"{place}: not YAML: {getattr(error, 'problem', None) or error}")
        return {}
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        problems.append(f"{path}: a config consists of lines `flag: value`")
        return {}
    settings: dict[str, Setting] = {}
    for key, value in root.value:
        where = f"{path}, line {key.start_mark.line + 1}"
        text = _as_text(value)
        if not isinstance(key, yaml.ScalarNode) or text is None:
            problems.append(f"{where}: `{key.value}` must have one value, or a list of values")
        elif text == "" and value.style is None:
            problems.append(f"{where}: `{key.value}` has no value")
        elif key.value in settings:
            problems.append(f"{where}: `{key.value}` is there twice, first in {settings[key.value].where}")
        else:
            settings[key.value] = Setting(text, where)
    return settings


def _as_text(node: yaml.Node) -> str | None:
    """A value as on the command line, where fairseq's lists have commas; None if it is neither a value nor a list."""
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode) and all(isinstance(one, yaml.ScalarNode) for one in node.value):
        return ",".join(one.value for one in node.value)
    return None


def table_configs(table: str, dataset: str) -> list[str]:
    """The configs of the rows of one of the paper's tables, in its order, as ``DATASET/NAME``.

    Args:
        table: a table of the paper, see ``paper.rows_of_table``.
        dataset: one of ``DATASETS``, for the rows that are of it, or of ``SMALL_DATASETS``: the rows of Transformer Big
            that its size has, with widths in the same proportion to One Wide FFN's.

    Raises:
        InputError: the table has no such row.
    """
    found = [name for row in rows_of_table(table) if (name := row_config(row, dataset))]
    if not found:
        tables = dict.fromkeys([*(row.table for row in rows()), SIMILARITY_TABLE, BATCH_SIZES_TABLE])
        known = [name for name in tables if any(row_config(row, dataset) for row in rows_of_table(name))]
        has = f"has {', '.join(known)}" if known else f"is none of {', '.join((*DATASETS.values(), *SMALL_DATASETS))}"
        raise InputError(f"there is no row of table '{table}' for '{dataset}', which {has}")
    return list(dict.fromkeys(found))


def row_config(row: PaperRow, dataset: str) -> str | None:
    """The config of a row of the paper, as ``DATASET/NAME``; None if the row is not of that dataset."""
    size, width = row.size, row.shared_ffn_dim
    if dataset in SMALL_DATASETS:
        size = SMALL_DATASETS[dataset]
        if (row.pair, row.size) != ("en-de", "big") or arch_name(size, row.configuration) not in ARCHS:
            return None
        if width is not None and width != SIZES[row.size].ffn_dim:
            width = width * SIZES[size].wide_ffn_dim // SIZES[row.size].wide_ffn_dim
        else:
            width = None
    elif dataset != DATASETS[row.pair]:
        return None
    return f"{dataset}/{config_name(size, row.configuration, width)}"


def config_name(size: str, configuration: str, ffn_dim: int | None) -> str:
    """``<size>[_<configuration>[_<width>]]``, in the words of the named archs; no width where it is the arch's own."""
    numbers = SIZES[size]
    wide = numbers.configurations["one_wide_ffn"]
    if ffn_dim == numbers.wide_ffn_dim and numbers.configurations[configuration].flags == wide.flags:
        configuration, ffn_dim = "one_wide_ffn", None
    name = arch_name(size, configuration).removeprefix("owf_")
    return name if ffn_dim in (None, numbers.ffn_dim) else f"{name}_{ffn_dim}"
