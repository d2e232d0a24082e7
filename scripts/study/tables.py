#!/usr/bin/env python3
"""The tables and pictures of the study, from the results of its runs alone: no checkpoint is needed.

example:
  python scripts/study/tables.py --ref runs/study/raw/test.de
  python scripts/study/tables.py --ref test.de --results runs/study/results --output runs/study/tables

Scores are means over the seeds that are there; daggers and p are of the bootstrap over seeds and segments of
`owf evaluate --seeds`. For each question of which a baseline and another row are there, QUESTION.json has the rows of
its table, and QUESTION.png the losses on the validation set along the training. The pictures need matplotlib.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _plan import KIND, RECORD
from _runs import QUESTIONS, ROWS, Question

from owf_fairseq.errors import InputError, collect

ROOT = Path(__file__).resolve().parent.parent.parent
MADE_BY = "bash scripts/study.sh"
ONE_CACHE = "one_cache"

Json = dict[str, Any]


@dataclass(frozen=True)
class System:
    """What a table has a row for: a model, decoded in one way.

    Attributes:
        name: of the row in ``ROWS``, with ``_one_cache`` behind if it was decoded so.
        label: for the table.
        records: of its runs, by seed.
        texts: their translations.
    """

    name: str
    label: str
    records: Mapping[int, Json]
    texts: Mapping[int, Path]

    @property
    def curve(self) -> dict[int, float]:
        """nll in bits on the validation set by updates, the mean over the runs, where all of them have one."""
        curves = [{point["updates"]: point["nll_bits"] for point in one["curve"]} for one in self.records.values()]
        common = sorted(set.intersection(*map(set, curves)))
        return {updates: statistics.fmean(curve[updates] for curve in curves) for updates in common}

    @property
    def best(self) -> float | None:
        """The lowest nll of a run, the mean over the runs."""
        lowest = [min((point["nll_bits"] for point in one["curve"]), default=None) for one in self.records.values()]
        return None if None in lowest else statistics.fmean(one for one in lowest if one is not None)


def main(argv: list[str] | None = None) -> int:
    """Reads the results and writes the tables.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ref", type=Path, required=True, metavar="FILE", help="the test set's reference")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "docs/study/runs", metavar="DIR", help="default: docs/study/runs"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "docs/study", metavar="DIR", help="default: docs/study")
    parser.add_argument("--samples", type=int, default=1000, metavar="N", help="of the bootstrap (default: 1000)")
    args = parser.parse_args(argv)
    try:
        systems = read_systems(args.results, args.ref)
        for name, question in QUESTIONS.items():
            there = answered(question, systems)
            if not there:
                continue
            rows = make_rows(question, there, args.ref, args.samples)
            write(args.output / f"{name}.json", rows)
            draw(question.title, there, args.output / f"{name}.png")
            print(f"\n{question.title}: {args.output / name}.json, {name}.png\n\n{shown(rows)}", flush=True)
    except InputError as error:
        for problem in error.problems:
            print(f"tables.py: error: {problem}", file=sys.stderr)
        return 2
    return 0


def read_systems(folder: Path, reference: Path) -> dict[str, System]:
    """All that there are results of, by name, in the order of ``ROWS``.

    Raises:
        InputError: with every problem: results that can't be read, are of different recipes or of another reference.
    """
    from owf_fairseq.files.json_object import read_object
    from owf_fairseq.scoring.inputs import read_text

    problems: list[str] = []
    wanted = collect(problems, lambda: read_text(str(reference)))
    first: tuple[Path, Json] | None = None
    found: dict[str, System] = {}
    for path in sorted(folder.glob(f"*_seed_*/{RECORD}")):
        record = collect(problems, lambda at=path: read_object(at))  # type: ignore[misc]
        if record is None:
            continue
        if record.get("kind") != KIND or record.get("name") not in ROWS:
            problems.append(f"{path} is not of a run of the study")
            continue
        if wanted is not None and record["reference"] != wanted.sha256:
            problems.append(f"{path} was scored with another reference than `--ref` {reference}")
        first = first or (path, record)
        ours, theirs = record["recipe"], first[1]["recipe"]
        different = [flag for flag in {**theirs, **ours} if theirs.get(flag) != ours.get(flag)]
        if different:
            problems.append(f"{path} and {first[0]} are of different recipes: {', '.join(different)}")
        row = ROWS[record["name"]]
        for way, label in (("", row.label), (f".{ONE_CACHE}", f"{row.label}; decoded with one cache")):
            text = path.with_name(f"test{way}.de")
            if way and not text.exists():
                continue
            name = record["name"] + way.replace(".", "_")
            system = found.setdefault(name, System(name, label, {}, {}))
            found[name] = System(
                name, label, {**system.records, record["seed"]: record}, {**system.texts, record["seed"]: text}
            )
    if problems:
        raise InputError(problems)
    return {name: found[name] for row in ROWS for name in (row, f"{row}_{ONE_CACHE}") if name in found}


def answered(question: Question, systems: Mapping[str, System]) -> list[System]:
    """The systems of a question, of those baselines that are there; none if nothing is compared."""
    there: list[System] = []
    base = ""
    for name in question.rows:
        base = name if name in question.baselines else base
        if base in systems:
            there += [systems[each] for each in (name, f"{name}_{ONE_CACHE}") if each in systems]
    return there if len(there) > sum(one.name in question.baselines for one in there) else []


def make_rows(question: Question, systems: Sequence[System], reference: Path, samples: int) -> list[dict[str, str]]:
    """The cells of a table, a row for each system."""
    from owf_fairseq.scoring.evaluate import cell, evaluate
    from owf_fairseq.scoring.metrics import MetricSettings
    from owf_fairseq.tables import number

    files = [f"{one.name}_seed_{seed}={text}" for one in systems for seed, text in sorted(one.texts.items())]
    bases = [one.name for one in systems if one.name in question.baselines]
    settings = MetricSettings(["bleu", "chrf"], samples=samples)
    made = evaluate(files, [str(reference)], baselines=bases, seeds=True, language="de", settings=settings)
    scored = {entry["name"]: entry for entry in made["systems"]}
    rows = []
    for system in systems:
        entry = scored[system.name]
        bleu, base = entry["scores"]["bleu"], scored.get(entry["baseline"])  # a baseline has none
        record = next(iter(system.records.values()))
        rows.append(
            {
                "model": system.label,
                "parameters": number(record["parameters"]),
                "seeds": str(len(system.texts)),
                "BLEU": cell(bleu, 1, True).strip(),
                "chrF": cell(entry["scores"]["chrf"], 1, True).strip(),
                "compared with": ROWS[base["name"]].label if base else "-",
                "BLEU, difference": f"{bleu['score'] - base['scores']['bleu']['score']:+.1f}" if base else "-",
                "p": number(bleu["p_value"], 3),
                "difference in the paper": difference_in_paper(system.name, base["name"]) if base else "-",
                "validation, bits a piece": number(system.best, 3),
            }
        )
    return rows


def difference_in_paper(name: str, base: str) -> str:
    """BLEU of the paper's row minus that of its baseline, whatever way to decode; ``-`` if it has no such rows."""
    from owf_fairseq.paper.rows import rows

    bleu = {row.row: row.bleu for row in rows() if (row.size, row.pair) == ("big", "en-de")}
    found = [bleu.get(ROWS[each.removesuffix(f"_{ONE_CACHE}")].paper or "") for each in (name, base)]
    return "-" if found[0] is None or found[1] is None else f"{found[0] - found[1]:+.1f}"


def shown(rows: Sequence[Mapping[str, str]]) -> str:
    """The table for the terminal."""
    from owf_fairseq.tables import text_table

    return text_table(list(rows[0]), [list(row.values()) for row in rows], words=(0, 5))


def write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Writes a table for `scripts/render_tables.py`."""
    from owf_fairseq.files.outputs import write_output

    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"made_by": MADE_BY, "rows": rows}, indent=1, ensure_ascii=False)
    write_output("--output", path, text.split("\n"))


def draw(title: str, systems: Sequence[System], path: Path) -> None:
    """The losses along the training, a line for each model."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every font
    from matplotlib.figure import Figure

    from owf_fairseq.files.outputs import output_file

    figure = Figure(figsize=(8, 5), layout="constrained")
    axis = figure.subplots()
    trained = [system for system in systems if not system.name.endswith(ONE_CACHE)]
    for place, system in enumerate(trained):
        points = system.curve
        style = "-" if place < 10 else "--"  # there are ten colours
        axis.plot(list(points), list(points.values()), style, label=f"{system.label} (n = {len(system.records)})")
    axis.set_title(title)
    axis.set_xlabel("updates")
    axis.set_ylabel("validation, bits a piece")
    axis.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=7)
    with output_file("--output", path) as place_of_it:
        figure.savefig(place_of_it, format="png", dpi=120)


if __name__ == "__main__":
    sys.exit(main())
