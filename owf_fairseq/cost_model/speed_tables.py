"""What the tables of measured and of predicted speeds have in common; both are made of a list of entries in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from owf_fairseq.tables import Report

Entry = dict[str, Any]

TEXT = "text"
"""What an entry has as its ``lengths`` where they vary; elsewhere they are like ``26/30``."""


def mean_lengths(entry: Entry) -> str:
    """Pieces of the source and the target, in the mean: ``26/30``, ``24.3/27.1``."""
    return "/".join("-" if (value := entry[name]) is None else f"{value:.4g}" for name in _LENGTHS)


_LENGTHS = ("source_length", "target_length")


def batch_size_table(
    compared: Mapping[str, str | None],
    entries: Sequence[Entry],
    speed: Callable[[Entry], str],
    ratio: Callable[[Entry], float | None],
    data: Any,
    notes: Sequence[str] = (),
) -> Report:
    """Speeds by batch size, in the shape of the paper's appendix.

    Args:
        compared: the models' names, with those of the models that they are compared with; None for these.
        entries: in the order of the rows, with one for each model in each row.
        speed: an entry's cell.
        ratio: an entry's speed relative to that of the model that it is compared with.
        data: the report's JSON.
        notes: sentences under the table.
    """
    groups = [entries[start : start + len(compared)] for start in range(0, len(entries), len(compared))]
    others = [name for name, baseline in compared.items() if baseline is not None]
    header = [
        *("source/target", "batch", *(f"{name}, tokens/s" for name in compared)),
        *(f"{name}, speed-up, %" for name in others),
    ]
    rows = []
    for group in groups:
        ratios = [ratio(entry) for entry in group if entry["name"] in others]
        cells = ["-" if one is None else f"{100 * (one - 1):+.0f}" for one in ratios]
        rows.append([mean_lengths(group[0]), str(group[0]["batch_size"]), *map(speed, group), *cells])
    return Report(header, rows, data, notes, words=(0,))
