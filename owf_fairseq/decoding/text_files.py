"""Texts as they are translated: read as they come, and written such that an interruption loses little."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from owf_fairseq.decoding.translator import ScoredText, Translator
from owf_fairseq.files.job import Job
from owf_fairseq.files.lines import PathLike, decode_lines, stream_lines, stream_name, unreadable, without_ends
from owf_fairseq.files.outputs import writing
from owf_fairseq.files.work_folder import WorkFolder
from owf_fairseq.progress import Progress

_TEXT = "text"
"""What is translated until now, in the folder of the work."""


@dataclass(frozen=True)
class Text:
    """A text that is read once, from its start to its end.

    Attributes:
        file: where it comes from.
        lines: how many there are; None for a pipe or a terminal, which only its end tells.
        errors: what to do with bytes that are not UTF-8, see ``read_lines``.
    """

    file: BinaryIO
    lines: int | None
    errors: str

    @classmethod
    def open(cls, path: PathLike | None, errors: str = "strict") -> Text:
        """Opens a text. A file's lines are looked at before; those of a pipe when they come.

        Args:
            path: None for standard input.
            errors: see the class.

        Raises:
            InputError: it can't be read, or lines of a file are not UTF-8.
        """
        try:
            file = sys.stdin.buffer if path is None else open(path, "rb")  # noqa: SIM115 (it is read later)
            if not file.seekable():
                return cls(file, None, errors)
            start = file.tell()
            lines = sum(1 for _ in stream_lines(file, errors))
            file.seek(start)
        except OSError as error:
            raise unreadable(path or "standard input", error) from error
        return cls(file, lines, errors)

    def buffers(self, size: int, skip: int = 0, warn: Callable[[str], None] | None = None) -> Iterator[list[str]]:
        """Reads so many lines at a time, and waits for no more than these.

        Args:
            size: of a buffer.
            skip: lines that are left out before.
            warn: see ``read_lines``.

        Raises:
            InputError: it can't be read, or lines of a buffer are not UTF-8: that buffer is not given.
        """
        name = stream_name(self.file)
        lines = itertools.islice(without_ends(self.file, at_start=True), skip, None)
        try:
            for first in itertools.count(skip + 1, size):
                buffer = list(decode_lines(itertools.islice(lines, size), name, self.errors, warn, first))
                if not buffer:
                    return
                yield buffer
        except OSError as error:
            raise unreadable(name, error) from error


RowsToLines = Callable[[int, Iterable[list[ScoredText]]], Iterable[str]]
"""Gives the lines to write of the number of the first line of the input and the translations of some."""


def translate_to_stream(
    translator: Translator, text: Text, stream: BinaryIO, rows: RowsToLines, progress: Progress | None = None
) -> None:
    """Translates a text; each buffer is written as soon as it is done."""
    for buffer in text.buffers(translator.batching.buffer, warn=translator.warn):
        first = translator.lines + 1
        _write(stream, rows(first, translator.translate_buffer(buffer, progress)))


def translate_to_file(
    translator: Translator, text: Text, job: Job, output: PathLike, rows: RowsToLines, progress: Progress
) -> None:
    """Translates a text to a file, which appears when all is done; what is done until then, another call takes up.

    Args:
        translator: that has not translated anything yet.
        text: what to translate.
        job: what it is done for: with other settings or files, an interrupted run is not taken up.
        output: the file.
        rows: see there.
        progress: is told of each batch.

    Raises:
        InputError: another process is making this file, or it can't be written.
    """
    final = Path(os.path.abspath(output))
    record = job.record(final)
    settings = {**record["settings"], "input files": record["inputs"]}
    with (
        writing("--output", output),
        WorkFolder(final.parent / f".{final.name}.partial", settings) as work,
        open(work.path / _TEXT, "ab") as file,
    ):
        done = [result for _, result in sorted(work.results.get(_TEXT, {}).items())]
        # what was written after the last entry of the journal may not be whole
        file.truncate(done[-1]["bytes"] if done else 0)
        translator.lines = done[-1]["lines"] if done else 0
        translator.capped = [number for result in done for number in result["capped"]]
        progress.resume(translator.lines)
        for buffer in text.buffers(translator.batching.buffer, translator.lines, translator.warn):
            first, capped = translator.lines + 1, len(translator.capped)
            _write(file, rows(first, translator.translate_buffer(buffer, progress)))
            size = file.seek(0, os.SEEK_END)
            result = {"lines": translator.lines, "bytes": size, "capped": translator.capped[capped:]}
            work.record(_TEXT, first, result)
        os.replace(work.path / _TEXT, final)


def _write(stream: BinaryIO, lines: Iterable[str]) -> None:
    stream.write(b"".join(line.encode("utf-8") + b"\n" for line in lines))
    stream.flush()
