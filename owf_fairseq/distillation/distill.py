"""Sequence-level knowledge distillation (Kim and Rush, 2016): a teacher's translations as a student's training data.

Lines are translated a buffer at a time, sorted by length; what is done is in a folder beside the output, so that an
interruption costs one buffer. Source and translation go to two files, line by line.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from owf_fairseq.decoding.translator import Translator
from owf_fairseq.distillation.filtering import REASONS, Filter
from owf_fairseq.distillation.picking import Picker
from owf_fairseq.distillation.sources import SourceFile
from owf_fairseq.errors import InputError
from owf_fairseq.files.job import Job
from owf_fairseq.files.outputs import writing
from owf_fairseq.files.work_folder import WorkFolder
from owf_fairseq.progress import Progress

COMMAND = "owf distill"
DISTILLATION = "distillation"
_STEP = "translate"
_SHOWN = 5
"""Line numbers that are named for each reason."""


@dataclass
class Distilled:
    """What became of lines.

    Attributes:
        lines: that were read.
        written: pairs that were written.
        left_out: pairs that were not, by reason (see ``filtering.REASONS``).
        examples: for each reason the places of some: file and line.
        tokens: pieces of the translations.
        picked: lines of which a translation was picked by a score. not_first: of which it was not the first.
        score_of_picked, score_of_first: sums of scores, for their means.
    """

    lines: int = 0
    written: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    tokens: int = 0
    picked: int = 0
    not_first: int = 0
    score_of_picked: float = 0.0
    score_of_first: float = 0.0

    def add(self, other: Distilled) -> None:
        """Adds what became of other lines."""
        for name, value in vars(other).items():
            if isinstance(value, (int, float)):
                setattr(self, name, getattr(self, name) + value)
        self.left_out.update(other.left_out)
        for reason, places in other.examples.items():
            self.examples[reason] = (self.examples.get(reason, []) + places)[:_SHOWN]

    def leave_out(self, reason: str, place: str) -> None:
        """Counts a pair that is not written."""
        self.left_out[reason] += 1
        if len(places := self.examples.setdefault(reason, [])) < _SHOWN:
            places.append(place)

    @classmethod
    def read(cls, values: dict[str, Any]) -> Distilled:
        """What a journal has."""
        return cls(**{**values, "left_out": Counter(values["left_out"])})

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        return {
            "lines": self.lines,
            "written": self.written,
            "left_out": {reason: self.left_out[reason] for reason in REASONS},
            "examples": self.examples,
            "tokens": self.tokens,
            "picked": self.picked,
            "not_first": self.not_first,
            "mean_score_of_picked": self.score_of_picked / self.picked if self.picked else None,
            "mean_score_of_first": self.score_of_first / self.picked if self.picked else None,
        }


@dataclass(frozen=True)
class Distillation:
    """How lines become pairs.

    Attributes:
        translator: of the teacher; lines that are too long for it are blank.
        filter: what is left out.
        picker: picks one of the translations of a line with a reference; None for the first.
    """

    translator: Translator
    filter: Filter
    picker: Picker | None = None

    def pairs(
        self, name: str, lines: Sequence[str], references: Sequence[str | None], progress: Progress | None = None
    ) -> tuple[list[tuple[str, str]], Distilled]:
        """Translates lines.

        Args:
            name: of the file, for the report.
            lines: the next ones of it.
            references: of them.
            progress: is told of each batch.

        Returns:
            The pairs that are kept, in order, and what became of the lines.
        """
        translator = self.translator
        first, before, capped = translator.lines + 1, translator.tokens, len(translator.capped)
        found = translator.translate_buffer(lines, progress)
        unfinished = set(translator.capped[capped:])
        result = Distilled(lines=len(lines), tokens=translator.tokens - before)
        kept = []
        texts = self._pick([[one.text for one in translations] for translations in found], references, result)
        for number, (source, best, reference) in enumerate(zip(lines, texts, references, strict=True), first):
            reason = self._reason(source, best, reference, number in unfinished)
            if reason is None:
                kept.append((source, best))
            else:
                result.leave_out(reason, f"{name}, line {number}")
        result.written = len(kept)
        return kept, result

    def _pick(
        self, translations: Sequence[Sequence[str]], references: Sequence[str | None], result: Distilled
    ) -> list[str]:
        """One translation of each line."""
        picked = [texts[0] for texts in translations]
        if self.picker is None:
            return picked
        rows = {n: (translations[n], text) for n, text in enumerate(references) if text and picked[n]}
        for n, found in zip(rows, self.picker.pick(list(rows.values())), strict=True):
            picked[n] = translations[n][found.place]
            result.picked += 1
            result.not_first += found.place > 0
            result.score_of_picked += found.score
            result.score_of_first += found.first
        return picked

    def _reason(self, source: str, translation: str, reference: str | None, unfinished: bool) -> str | None:
        segmentation = self.translator.segmentation
        length = len(segmentation.encode(source).split())
        if length > self.translator.limit:
            return "long"
        if unfinished:
            return "unfinished"
        lengths = length, len(segmentation.encode(translation, segmentation.target).split())
        return self.filter.reason(source, translation, reference, lengths)


def distill(
    distillation: Distillation, sources: Sequence[SourceFile], job: Job, outputs: tuple[Path, Path], progress: Progress
) -> Distilled:
    """Translates files to two files, which appear when all is done; what is done until then, another call takes up.

    Args:
        distillation: whose translator has not translated anything yet.
        sources: the files.
        job: what it is done for: with other settings or files, an interrupted run is not taken up.
        outputs: files for sources and translations.
        progress: is told of each batch.

    Returns:
        What became of all lines.

    Raises:
        InputError: another process is making these files, they can't be written, or nothing is left to write.
    """
    record = job.record(outputs[0])
    settings = {**record["settings"], "input files": record["inputs"]}
    translator, total = distillation.translator, Distilled()
    place = outputs[0].parent / f".{outputs[0].name}.partial"
    with writing("--output", outputs[0]), WorkFolder(place, settings) as work, contextlib.ExitStack() as opened:
        files = [opened.enter_context(open(work.path / side, "ab")) for side in ("source", "target")]
        done = [result for _, result in sorted(work.results.get(_STEP, {}).items())]
        for file, size in zip(files, done[-1]["bytes"] if done else (0, 0), strict=True):
            file.truncate(size)  # what was written after the last entry of the journal may not be whole
        for entry in done:
            total.add(Distilled.read(entry["distilled"]))
        progress.resume(total.lines)
        skip, number = total.lines, len(done)
        for source in sources:
            translator.lines = min(skip, source.lines)  # they are numbered within their file
            translator.name = source.path
            skip -= translator.lines
            for lines, references in source.buffers(translator.batching.buffer, translator.lines):
                kept, result = distillation.pairs(source.path, lines, references, progress)
                for file, side in zip(files, (0, 1), strict=True):
                    file.write(b"".join(pair[side].encode() + b"\n" for pair in kept))
                    file.flush()
                sizes = [file.seek(0, os.SEEK_END) for file in files]
                work.record(_STEP, number, {"bytes": sizes, "distilled": vars(result)})
                number += 1
                total.add(result)
        if not total.written:
            with work.useless_after(InputError):
                raise InputError(f"no pair is left of {total.lines} lines: {said_left_out(total)}")
        for path, name in zip(outputs, ("source", "target"), strict=True):
            os.replace(work.path / name, path)
    return total


def said_left_out(found: Distilled) -> str:
    """Why pairs were left out, and how many."""
    return ", ".join(
        f"{found.left_out[reason]:,} with {what}" for reason, what in REASONS.items() if found.left_out[reason]
    )


def report_lines(found: Distilled, settings: dict[str, Any]) -> list[str]:
    """The lines of the JSON file."""
    values = {"kind": DISTILLATION, "settings": settings, **found.as_json()}
    return json.dumps(values, indent=1, ensure_ascii=False).split("\n")
