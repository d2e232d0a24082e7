"""The programs of scripts/study as modules, and results of runs that were never made."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

from fairseq_for_tests import REPOSITORY
from scripts_for_tests import load_script

from owf_fairseq.files.lines import write_lines

FOLDER = REPOSITORY / "scripts/study"

REFERENCE = [f"ein Satz mit sieben Wörtern Nummer {number} und Ende" for number in range(20)]
REFERENCE_SUM = hashlib.sha256("".join(f"{line}\n" for line in REFERENCE).encode()).hexdigest()


def load_study(name: str) -> ModuleType:
    """A file of the study, which finds the parts that lie beside it."""
    with mock.patch.object(sys, "path", [str(FOLDER), *sys.path]):
        return load_script(f"study/{name}.py")


def write_run(folder: Path, name: str, seed: int, nll: dict[int, float], lines: list[str], **other: object) -> Path:
    """The results of a run, with a curve of these losses in bits and this translation."""
    place = folder / f"{name}_seed_{seed}"
    curve = [{"updates": updates, "loss": value + 1, "nll_bits": value} for updates, value in nll.items()]
    record: dict[str, object] = {
        "kind": "study_run",
        "name": name,
        "seed": seed,
        "recipe": {"lr": "0.004"},
        "parameters": 1000 + seed,
    }
    write_lines(place / "test.de", lines)
    (place / "run.json").write_text(json.dumps({**record, "curve": curve, "reference": REFERENCE_SUM, **other}))
    return place
