"""What an exploration found: the lines to show, as JSON, and tables that are made of the JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from owf_fairseq.cost_model.cost import Workload, cost
from owf_fairseq.cost_model.device_profiles import DeviceProfile
from owf_fairseq.cost_model.speed_tables import mean_lengths
from owf_fairseq.explore.front import Question, Timed, find_matches, individual_count, time_matches
from owf_fairseq.explore.layouts import Key, Layout, individual_layout, layout_of_row
from owf_fairseq.paper import rows as paper
from owf_fairseq.tables import Report, number

FRONT = "*"
"""Marks a line of the front."""

_FIGURES = ("row", "bleu", "chrf", "comet", "tokens_per_s", "params_millions")
_NOTHING: dict[str, Any] = dict.fromkeys(_FIGURES)


@dataclass(frozen=True)
class Timing:
    """What the matches are timed for, and which are shown.

    Attributes:
        profile: the device.
        workloads: one for each table.
        fp16: whether values have two bytes.
        top: how many of the fastest are shown beside the front. everything: whether all matches are.
    """

    profile: DeviceProfile
    workloads: tuple[Workload, ...]
    fp16: bool = False
    top: int = 10
    everything: bool = False


@dataclass(frozen=True)
class Exploration:
    """What was found.

    Attributes:
        data: as JSON has it; of the layouts, those that are shown.
        timed: all matches under each workload, fastest first. shown: those of them that are shown.
    """

    data: dict[str, Any]
    timed: tuple[list[Timed], ...]
    shown: tuple[list[Timed], ...]

    def reports(self) -> list[Report]:
        """A table for each workload, all with the same JSON."""
        return [workload_table(self.data, place) for place in range(len(self.timed))]

    def lines(self) -> list[tuple[Layout, list[str]]]:
        """The layouts that are shown, each with sentences on it."""
        found: dict[Key, tuple[Layout, list[str]]] = {}
        vocabulary = number(self.data["vocab_size"])
        for lines, workload in zip(self.shown, self.data["workloads"], strict=True):
            setting = (
                f"{self.data['profile']['name']}, batch size {workload['batch_size']}, beam {self.data['beam']}, "
                f"{mean_lengths(workload)} pieces"
            )
            for one in lines:
                size = f"Size {one.layout.size}, {one.parameters:,} parameters with a vocabulary of {vocabulary}."
                said = found.setdefault(one.layout.key, (one.layout, [size]))[1]
                said.append(f"Predicted: {one.tokens_per_s:,.1f} tokens/s ({setting}).")
        return list(found.values())


def explore(question: Question, timing: Timing) -> Exploration:
    """Looks for the layouts that match, and predicts their speeds.

    Raises:
        InputError: no layout matches.
    """
    matches = find_matches(question)
    measured = paper_rows(question.size, question.vocab_size)
    individual = individual_layout(question.size).shape(question.vocab_size)
    timed, shown, entries = [], [], []
    for workload in timing.workloads:
        found = time_matches(matches, question.vocab_size, timing.profile, workload, timing.fp16)
        lines = found if timing.everything else _to_show(found, timing.top, measured)
        speed = timing.profile.tokens_per_s(individual, workload, timing.fp16)
        timed.append(found)
        shown.append(lines)
        entries.append(
            {
                "batch_size": workload.batch_size,
                "source_length": workload.source_length,
                "target_length": workload.target_length,
                "individual_tokens_per_s": speed,
                "on_front": sum(one.on_front and one.is_first for one in found),
                "layouts": [
                    {
                        **_described(one.layout, measured),
                        "parameters": one.parameters,
                        "tokens_per_s": one.tokens_per_s,
                        "ratio": one.tokens_per_s / speed,
                        "flops": cost(one.layout.shape(question.vocab_size), workload).flops,
                        "rank": one.rank,
                        "alike": one.alike,
                        "on_front": one.on_front,
                    }
                    for one in lines
                ],
            }
        )
    data = {
        "kind": "exploration",
        "size": question.size,
        "vocab_size": question.vocab_size,
        "budget": question.budget,
        "tolerance": question.tolerance,
        "multiple_of": question.multiple_of,
        "families": list(question.families),
        "individual_parameters": individual_count(question.size, question.vocab_size),
        "matching": len(matches),
        "profile": asdict(timing.profile),
        "fp16": timing.fp16,
        "beam": timing.workloads[0].beam,
        "workloads": entries,
    }
    return Exploration(data, tuple(timed), tuple(shown))


def _to_show(timed: Sequence[Timed], top: int, measured: dict[Key, paper.PaperRow]) -> list[Timed]:
    """The front, the fastest, and what the paper measured; of layouts that are alike, the first."""
    firsts = [one for one in timed if one.is_first]
    chosen = {one.layout.key for one in (*firsts[:top], *(one for one in firsts if one.on_front))}
    return [one for one in timed if one.layout.key in chosen or one.layout.key in measured]


def paper_rows(size: str, vocab_size: int) -> dict[Key, paper.PaperRow]:
    """What the paper measured of a size, by layout: with the languages of that vocabulary, or else English-German."""
    pairs = {rows: pair for pair, rows in paper.VOCAB_SIZES.items()}
    pair = pairs.get(vocab_size, "en-de")
    found: dict[Key, paper.PaperRow] = {}
    for row in paper.rows():
        if (row.size, row.pair) == (size, pair):
            key = layout_of_row(row).key
            if key not in found or _figures(row) >= _figures(found[key]):  # some tables repeat a row with fewer of them
                found[key] = row
    return found


def _figures(row: paper.PaperRow) -> int:
    return sum(getattr(row, name) is not None for name in _FIGURES)


def _described(layout: Layout, measured: dict[Key, paper.PaperRow]) -> dict[str, Any]:
    """What of a line is the layout's own."""
    row = measured.get(layout.key)
    return {
        "arch": layout.arch,
        "flags": layout.flags(),
        "ffn_layers": {stack: layout.ffn_layers(stack) for stack in layout.numbers.stacks},
        "paper": row and {"pair": row.pair, **{name: getattr(row, name) for name in _FIGURES}},
    }


def workload_table(data: dict[str, Any], place: int) -> Report:
    """The lines of one workload."""
    workload = data["workloads"][place]
    rows = []
    for line in workload["layouts"]:
        figures = line["paper"] or _NOTHING
        rows.append(
            [
                f"{number(line['rank'])} {FRONT}" if line["on_front"] else number(line["rank"]),
                " ".join(line["flags"]) or line["arch"],
                number(line["parameters"]),
                "+".join(map(str, line["ffn_layers"].values())),
                number(line["flops"] / 1e6, 1),
                number(line["tokens_per_s"], 1),
                f"{line['ratio']:.2f}",
                number(line["alike"]),
                figures["row"] or "",
                "" if figures["bleu"] is None else number(figures["bleu"], 1),
                "" if figures["tokens_per_s"] is None else number(figures["tokens_per_s"], 1),
            ]
        )
    header = (
        *("rank", f"owf_{data['size']} with", "parameters", "FFN layers", "MFLOP/token", "tokens/s", "ratio", "alike"),
        *("the paper's row", "its BLEU", "its tokens/s"),
    )
    tolerance = f"{100 * data['tolerance']:g} %"
    families = ", ".join(data["families"])
    notes = (
        f"{number(data['matching'])} layouts of {families} have {number(data['budget'])} parameters, give or take "
        f"{tolerance}, with a vocabulary of {number(data['vocab_size'])}; {number(workload['on_front'])} are on the "
        f"front ({FRONT}): none has as many parameters and is faster, or more and is as fast.",
        f"tokens/s: predicted for {data['profile']['name']}, {mean_lengths(workload)} pieces of source and target, "
        f"batch size {workload['batch_size']}, beam {data['beam']}; rank: by it. ratio: to owf_{data['size']}. "
        f"({data['profile']['source']}.)",
        "alike: layouts of the same count and speed, of which the first is shown; nothing here says which translates "
        "best.",
    )
    return Report(header, rows, data, notes, words=(1, 8))
