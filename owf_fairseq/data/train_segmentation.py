"""Segmentations made from the training text, and recorded beside the data."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from owf_fairseq.data.recorded_segmentation import write_segmentation_record
from owf_fairseq.data.segmentation import SPECIALS, Moses, Segmentation
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import PathLike, stream_lines, write_lines

SEGMENTATION_FILES = {
    "model": "sentencepiece.model",
    "source_model": "sentencepiece.source.model",
    "target_model": "sentencepiece.target.model",
    "codes": "bpe.codes",
}
"""Of the files that a record names, by its entries."""

SEGMENTATIONS = ("sentencepiece", "moses-bpe", "none")
"""What `--segmentation` takes."""
NORMALIZATIONS = ("identity", "nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf")
"""SentencePiece's names of its rules."""

_THREADS = 4
_LONGEST = 4192
"""Bytes of a line: SentencePiece leaves longer ones out without a word. Its limit is stored in the model: it stays."""
_LEFT_OUT = "\u2585"
"""The sign for what is unknown, in SentencePiece's training: it leaves lines that have it out, too."""


@dataclass(frozen=True)
class Learning:
    """How a segmentation is learnt. Each attribute is a flag of `owf prepare`.

    Attributes:
        segmentation: its kind, one of `SEGMENTATIONS`.
        vocab_size: of the dictionary, fairseq's four specials included; a small corpus may give fewer pieces. With
            `moses-bpe`, the number of merge operations, as is usual there: the dictionary gets about that size.
        character_coverage: share of the text's characters that get a piece; the rarest of the rest become `<unk>`.
        sample: training pairs that it is learnt from, at most. SentencePiece needs about 25 bytes of memory a
            character (measured: 25 at 34 million, 27 at 39 million): 6 GB for a million pairs of 120 characters a side.
        segmentation_text: files that it is learnt from instead.
        separate_vocabularies: a SentencePiece model of `vocab_size` for each language; the dictionary has the pieces
            of both.
        normalization: SentencePiece's rule, applied to text before it is cut. By default none: a model learns to
            write what the references have. SentencePiece's own default is `nmt_nfkc`.
        lowercase: write text in small letters.
    """

    segmentation: str = "sentencepiece"
    vocab_size: int = 32000
    character_coverage: float = 0.9999
    sample: int = 1_000_000
    segmentation_text: tuple[str, ...] = ()
    separate_vocabularies: bool = False
    normalization: str = NORMALIZATIONS[0]
    lowercase: bool = False

    @property
    def kind(self) -> str:
        """A key of `segmentation.KINDS`."""
        return f"separate-{self.segmentation}" if self.separate_vocabularies else self.segmentation

    def problems(self) -> list[str]:
        """What can't be, and what is wrong with the files."""
        problems = []
        if self.segmentation not in SEGMENTATIONS:
            problems.append(f"`--segmentation` must be one of {', '.join(SEGMENTATIONS)}, but is {self.segmentation!r}")
        if self.normalization not in NORMALIZATIONS:
            problems.append(
                f"`--normalization` must be one of {', '.join(NORMALIZATIONS)}, but is {self.normalization!r}"
            )
        if self.vocab_size <= len(SPECIALS):
            problems.append(f"`--vocab-size` must be above {len(SPECIALS)}, but is {self.vocab_size}")
        if not 0.9 <= self.character_coverage <= 1:
            problems.append(f"`--character-coverage` must be from 0.9 to 1, but is {self.character_coverage}")
        if self.sample < 1:
            problems.append(f"`--sample` must be at least 1, but is {self.sample}")
        for path in self.segmentation_text:
            try:
                for _ in stream_lines(path):
                    pass
            except InputError as error:
                problems += [f"`--segmentation-text` {path}: {problem}" for problem in error.problems]
        of_sentencepiece = {
            "--segmentation-text": self.segmentation_text,
            "--separate-vocabularies": self.separate_vocabularies,
            "--normalization": self.normalization != NORMALIZATIONS[0],
        }
        for flag, given in of_sentencepiece.items():
            if given and self.segmentation != "sentencepiece":
                problems.append(f"`{flag}` is for sentencepiece, not for `--segmentation` {self.segmentation}")
        if self.segmentation_text and self.separate_vocabularies:
            problems.append(
                "`--separate-vocabularies` learns from each side of the training text: leave out `--segmentation-text`"
            )
        return problems


@dataclass(frozen=True)
class TrainingText:
    """What a segmentation is made from.

    Attributes:
        source, target: languages of the data.
        sides: cleaned lines of each language, the source first; for SentencePiece also of any other languages. They
            are read once.
    """

    source: str
    target: str
    sides: tuple[Iterable[str], ...]


def learn_segmentation(folder: PathLike, text: TrainingText, learning: Learning) -> Segmentation:
    """Make a segmentation and write it and its record into a folder.

    Args:
        folder: an existing folder.
        text: to make it from.
        learning: how.

    Raises:
        InputError: it cannot be made from this text.
    """
    kind = learning.kind
    made = _TRAINERS[kind](Path(folder), text, learning)
    if learning.lowercase:
        made["lowercase"] = True
    write_segmentation_record(Path(folder), {"type": kind, "source": text.source, "target": text.target, **made})
    return Segmentation.load(folder)


def _train_sentencepiece(folder: Path, text: TrainingText, learning: Learning) -> dict[str, Any]:
    return _train_models(folder, {"model": itertools.chain.from_iterable(text.sides)}, learning)


def _train_separate(folder: Path, text: TrainingText, learning: Learning) -> dict[str, Any]:
    return _train_models(folder, dict(zip(("source_model", "target_model"), text.sides, strict=True)), learning)


def _train_models(folder: Path, texts: dict[str, Iterable[str]], learning: Learning) -> dict[str, Any]:
    """Train a SentencePiece model for each text, by its entry in the record, and say what is to be recorded."""
    import sentencepiece

    for entry, lines in texts.items():
        (folder / SEGMENTATION_FILES[entry]).write_bytes(_model(lines, learning))
    return {
        **{entry: SEGMENTATION_FILES[entry] for entry in texts},
        "vocab_size": learning.vocab_size,
        "character_coverage": learning.character_coverage,
        "normalization": learning.normalization,
        "sentencepiece_version": sentencepiece.__version__,
    }


def _model(lines: Iterable[str], learning: Learning) -> bytes:
    """Train a SentencePiece model (unigram).

    The same lines give the same model on every machine: the number of threads is fixed, because the sums of the
    training depend on it.
    """
    import sentencepiece

    sentencepiece.set_random_generator_seed(1)
    # Not `model_prefix`: SentencePiece would store the path of the (temporary) folder in the model.
    model = io.BytesIO()
    try:
        with _ended_by_interrupt():
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(
                    part for line in lines for part in usable_parts(line.lower() if learning.lowercase else line)
                ),
                model_writer=model,
                model_type="unigram",
                vocab_size=learning.vocab_size,
                character_coverage=learning.character_coverage,
                hard_vocab_limit=False,
                normalization_rule_name=learning.normalization,
                num_threads=_THREADS,
                # Named, so that no ordinary piece is spelt like one of fairseq's specials.
                unk_id=0,
                bos_id=1,
                eos_id=2,
                pad_id=3,
                minloglevel=2,
            )
    except (RuntimeError, OSError) as error:
        raise InputError(_why_not(str(error), learning)) from error
    return model.getvalue()


def usable_parts(line: str) -> Iterator[str]:
    """The parts of a line that SentencePiece takes: an ordinary line is one, as it is; a long one is cut.

    It is cut at a space where there is one, or else between characters.
    """
    if len(line) * 4 <= _LONGEST and _LEFT_OUT not in line:  # most lines
        yield line
        return
    for text in line.split(_LEFT_OUT):
        raw = text.encode()
        start = 0
        while len(raw) - start > _LONGEST:
            end = start + _LONGEST
            while raw[end] & 0xC0 == 0x80:  # inside a character
                end -= 1
            space = raw.rfind(b" ", start + 1, end + 1)
            end = end if space < 0 else space
            yield raw[start:end].decode().strip()
            start = end
        yield raw[start:].decode().strip() if start else text


def _why_not(error: str, learning: Learning) -> str:
    """What SentencePiece's error means, and what helps."""
    if needed := re.search(r"required_chars\. \d+ vs (\d+)", error):
        return (
            f"`--vocab-size` must be at least {int(needed[1]):,} for this text, but is {learning.vocab_size:,}: so "
            "many are fairseq's 4 special symbols and a piece for each character; a lower `--character-coverage` "
            "leaves out the rarest of them"
        )
    if ".empty()" in error:
        return (
            "there is no text to learn the segmentation from: all lines of the training text, or of "
            "`--segmentation-text`, are blank. Give text that is not"
        )
    reason = error.strip().split("\n")[0].rpartition("] ")[2].rstrip(".")
    return f"`--vocab-size` {learning.vocab_size}: SentencePiece can't make such a vocabulary from this text ({reason})"


@contextlib.contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end this process at once: Python would answer it when SentencePiece is done, minutes later."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _train_moses_bpe(folder: Path, text: TrainingText, learning: Learning) -> dict[str, Any]:
    """Learn joint BPE on the Moses tokens of both languages."""
    from subword_nmt.learn_bpe import learn_bpe

    langs = (text.source, text.target)
    moses = Moses(*langs)
    tokens = (" ".join(moses.tokens(line, lang)) for lang, side in zip(langs, text.sides, strict=True) for line in side)
    if learning.lowercase:
        tokens = (line.lower() for line in tokens)
    codes = io.StringIO()
    # its bar is of no use in a log
    with contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO()):
        learn_bpe(tokens, codes, learning.vocab_size)
    write_lines(folder / SEGMENTATION_FILES["codes"], codes.getvalue().rstrip("\n").split("\n"))
    return {"codes": SEGMENTATION_FILES["codes"], "merges": learning.vocab_size}


_TRAINERS: dict[str, Callable[[Path, TrainingText, Learning], dict[str, Any]]] = {
    "sentencepiece": _train_sentencepiece,
    "separate-sentencepiece": _train_separate,
    "moses-bpe": _train_moses_bpe,
    "none": lambda folder, text, learning: {},
}
