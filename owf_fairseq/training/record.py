"""What a training leaves in its folder on itself, and whether another one may go on from there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from owf_fairseq import USER_DIR
from owf_fairseq.doctor.installation import machine_facts
from owf_fairseq.files.fingerprint import KEY, changed_files
from owf_fairseq.files.lines import write_lines

TRAINING_RECORD = "resolved.yaml"

HEADER = (
    "# What `owf train` gave to fairseq-train for the checkpoints of this folder (true: the flag without a value), and "
    "which versions it ran with."
)

HARMLESS = (
    *("batch-size-valid", "cpu", "data-buffer-size", "ddp-backend", "device-id", "disable-validation"),
    *("empty-cache-freq", "max-epoch", "max-tokens-valid", "max-update", "max-valid-steps", "no-epoch-checkpoints"),
    *("load-checkpoint-on-all-dp-ranks", "no-last-checkpoints", "no-progress-bar", "num-workers", "patience"),
    *("restore-file", "save-async", "save-dir", "skip-invalid-size-inputs-valid-test", "stop-min-lr"),
    *("stop-time-hours", "tensorboard-logdir", "user-dir", "wandb-project", "write-checkpoints-asynchronously"),
)
"""Flags that change how long a training goes on and what it tells, not what the model learns in an update."""

HARMLESS_STARTS = ("distributed-", "eval-bleu", "keep-", "log-", "reset-", "save-interval", "validate-")

PARTS_OF_AN_UPDATE = ("max-tokens", "batch-size", "update-freq")
"""They depend on the GPUs: what is compared is the size of an update."""

Record = dict[str, Any]
"""Texts in dictionaries, and lists of texts."""


def make_record(
    config: str, flags: Mapping[str, tuple[str, ...]], update_size: int | None, processes: int, device: str
) -> Record:
    """What there is to write.

    Args:
        config: as the user named it.
        flags: of fairseq-train, by name, with what follows each.
        update_size: tokens or sentences of an update, as the config asks for; None if it does not say.
        processes: that train together.
        device: ``cpu`` or ``cuda``.
    """
    facts = machine_facts(device)
    return {
        "config": config,
        "flags": {name: values[0] if len(values) == 1 else list(values) or "true" for name, values in flags.items()},
        "update_size": str(update_size),
        "processes": str(processes),
        "versions": {**facts["versions"], **_commit()},
        "machine": {name: str(value) for name, value in facts["machine"].items()},
    }


def _commit() -> dict[str, str]:
    """The commit of the checkout that this package is in, if it is in one, with ``-dirty`` if files have changed."""
    root = Path(USER_DIR).parent
    if not (root / ".git").exists():
        return {}
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {"commit": found.stdout.strip()} if found.returncode == 0 else {}


class _AsTyped(yaml.SafeDumper):
    """Writes texts without quotes, numbers too: they are read again as texts."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def write_record(folder: Path, record: Record) -> None:
    """Writes it into the folder of the training, whole or not at all."""
    text = yaml.dump(record, Dumper=_AsTyped, sort_keys=False, allow_unicode=True, width=10**6)
    write_lines(folder / TRAINING_RECORD, [HEADER, *text.rstrip("\n").split("\n")])


def read_training_record(folder: Path) -> Record | None:
    """The record of a folder; None if there is none that can be read."""
    try:
        record = yaml.load((folder / TRAINING_RECORD).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return record if isinstance(record, dict) else None


def check_record(folder: Path, record: Record) -> list[str]:
    """Says what forbids a training to go on from the checkpoints of a folder: that it would be another training.

    Returns:
        The problems, to be reported with the command's others; none if the folder has no checkpoints, or no record.
    """
    file = folder / TRAINING_RECORD
    if not file.is_file() or not any(folder.glob("checkpoint*.pt")):
        return []
    before = read_training_record(folder)
    try:
        old = _compared(before or {})
    except (KeyError, TypeError, AttributeError):
        return [f"{file} can't be read: give another `--save-dir`, or remove the file to go on nevertheless"]
    new = _compared(record)
    different = [f"{name} (its content)" for name in changed_files((before or {}).get(KEY), record.get(KEY) or {})]
    different += [
        f"{name} {new.get(name, 'not given')} (before: {old.get(name, 'not given')})"
        for name in dict.fromkeys((*new, *old))
        if new.get(name) != old.get(name)
    ]
    if not different:
        return []
    return [
        f"{folder} has checkpoints of a training with other settings: {'; '.join(different)}. Give those settings, "
        f"another `--save-dir`, or remove {file} to go on nevertheless"
    ]


def _compared(record: Record) -> dict[str, Any]:
    """All of a record that makes a training what it is."""
    left_out = {*HARMLESS, *PARTS_OF_AN_UPDATE}
    flags = {
        name: value
        for name, value in record["flags"].items()
        if name not in left_out and not name.startswith(HARMLESS_STARTS)
    }
    data = os.pathsep.join(str(Path(folder).resolve()) for folder in flags["data"].split(os.pathsep))
    return {**flags, "data": data, "size of an update": record["update_size"]}
