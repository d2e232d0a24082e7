"""Segmentations made from the training text, and recorded beside the data."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from owf_fairseq.data.lines import PathLike, write_lines
from owf_fairseq.data.segmentation import RECORD, Moses, Segmentation
from owf_fairseq.errors import InputError

MODEL = "sentencepiece.model"
CODES = "bpe.codes"

_THREADS = 4
_MAX_TRAINING_LINES = 4_000_000


@dataclass(frozen=True)
class TrainingText:
    """What a segmentation is made from.

    Attributes:
        sides: cleaned lines of each language, the source first.
        vocab_size: of the dictionary, fairseq's four specials included; a small corpus may give fewer pieces. With
            `moses-bpe`, the number of merge operations, as is usual there: the dictionary gets about that size.
        character_coverage: share of the text's characters that get a piece; the rarest of the rest become `<unk>`.
    """

    sides: Mapping[str, Sequence[str]]
    vocab_size: int
    character_coverage: float

    def lines(self) -> Iterator[str]:
        """All lines of both languages."""
        return (line for side in self.sides.values() for line in side)


def train(kind: str, folder: PathLike, text: TrainingText) -> Segmentation:
    """Make a segmentation of a kind and write it and its record into a folder.

    Args:
        kind: a key of `segmentation.KINDS`.
        folder: an existing folder.
        text: to make it from.

    Raises:
        InputError: it cannot be made from this text.
    """
    source, target = text.sides
    record = {"type": kind, "source": source, "target": target, **_TRAINERS[kind](Path(folder), text)}
    write_lines(Path(folder) / RECORD, json.dumps(record, indent=1, ensure_ascii=False).split("\n"))
    return Segmentation.load(folder)


def _train_sentencepiece(folder: Path, text: TrainingText) -> dict[str, Any]:
    """Train a SentencePiece model (unigram).

    The same lines give the same model on every machine: the number of threads is fixed, because the sums of the
    training depend on it, and so is the seed that draws the lines of a large corpus.
    """
    import sentencepiece

    sentencepiece.set_random_generator_seed(1)
    # Not `model_prefix`: SentencePiece would store the path of the (temporary) folder in the model.
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=text.lines(),
            model_writer=model,
            model_type="unigram",
            vocab_size=text.vocab_size,
            character_coverage=text.character_coverage,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            num_threads=_THREADS,
            input_sentence_size=_MAX_TRAINING_LINES,
            shuffle_input_sentence=True,
            # Named, so that no ordinary piece is spelt like one of fairseq's specials.
            unk_id=0,
            bos_id=1,
            eos_id=2,
            pad_id=3,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        reason = str(error).strip().split("\n")[0].rpartition("] ")[2].rstrip(".")
        raise InputError(
            f"`--vocab-size` {text.vocab_size}: SentencePiece can't make such a vocabulary from this text ({reason}): "
            "try a larger size, or a lower --character-coverage"
        ) from error
    (folder / MODEL).write_bytes(model.getvalue())
    return {
        "model": MODEL,
        "vocab_size": text.vocab_size,
        "character_coverage": text.character_coverage,
        "sentencepiece_version": sentencepiece.__version__,
    }


def _train_moses_bpe(folder: Path, text: TrainingText) -> dict[str, Any]:
    """Learn joint BPE on the Moses tokens of both languages."""
    from subword_nmt.learn_bpe import learn_bpe

    source, target = text.sides
    moses = Moses(source, target)
    tokens = (" ".join(moses.tokens(line, lang)) for lang, side in text.sides.items() for line in side)
    codes = io.StringIO()
    learn_bpe(tokens, codes, text.vocab_size)
    write_lines(folder / CODES, codes.getvalue().rstrip("\n").split("\n"))
    return {"codes": CODES, "merges": text.vocab_size}


_TRAINERS: dict[str, Callable[[Path, TrainingText], dict[str, Any]]] = {
    "sentencepiece": _train_sentencepiece,
    "moses-bpe": _train_moses_bpe,
    "none": lambda folder, text: {},
}
