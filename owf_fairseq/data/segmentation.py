"""Text to pieces and back, as recorded beside the data, so that no later command needs a flag for it."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from owf_fairseq.data.lines import PathLike, write_lines
from owf_fairseq.errors import InputError

RECORD = "segmentation.json"
MODEL = "sentencepiece.model"
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
"""fairseq's own symbols, in its order: they start every dictionary, and no piece may be spelt like one of them."""

_THREADS = 4
_MAX_TRAINING_LINES = 4_000_000

# fairseq splits a line at everything that Python calls white space, also at U+0085 or U+2028: inside a piece it would
# cut the piece in two. The rest are other control characters, and SentencePiece's own sign for a space.
_SPACES = re.compile("[\\s\\x00-\\x1f\\x7f-\\x9f\u2581]+")


def clean(line: str) -> str:
    """Put one space where there is white space or a control character, and compose characters (Unicode NFC).

    Nothing else is changed, so that a model can learn to write what the references have (full-width punctuation, say).
    """
    return _SPACES.sub(" ", unicodedata.normalize("NFC", line)).strip()


class Segmentation:
    """A SentencePiece model for both languages.

    Args:
        folder: where the record and the model are.
        record: what `segmentation.json` holds.
    """

    def __init__(self, folder: PathLike, record: dict[str, Any]) -> None:
        import sentencepiece

        self.record = record
        self.source: str = record["source"]
        self.target: str = record["target"]
        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(Path(folder) / record["model"]))

    @classmethod
    def load(cls, folder: PathLike) -> Segmentation:
        """Load what `owf prepare` recorded in a folder of binary data.

        Raises:
            InputError: there is no record, or it is of another kind.
        """
        path = Path(folder) / RECORD
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            missing = sorted({"type", "model", "source", "target"} - set(record))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} can't be read ({error}): did `owf prepare` make {folder}?") from error
        if missing or record["type"] != "sentencepiece":
            what = f"lacks {', '.join(missing)}" if missing else f"is of type {record['type']!r}, not 'sentencepiece'"
            raise InputError(f"{path} {what}: make the data again with `owf prepare`")
        if not (Path(folder) / record["model"]).is_file():
            raise InputError(f"{path} names {record['model']}, which is not in {folder}")
        return cls(folder, record)

    def encode(self, line: str) -> str:
        """Cut a line of text into pieces, with a space between them."""
        pieces = self.processor.encode(clean(line), out_type=str)
        # Neighbouring characters that have no piece are left as they are: "</s>" must not end a sentence by that.
        return " ".join("<unk>" if piece in SPECIALS else piece for piece in pieces)

    def decode(self, pieces: str) -> str:
        """Join pieces to text; the inverse of `encode` up to `clean`."""
        return pieces.replace(" ", "").replace("\u2581", " ").strip()

    def symbols(self) -> list[str]:
        """List the pieces of text, in the model's order: fairseq's dictionary without its specials."""
        model = self.processor
        ids = range(model.get_piece_size())
        return [model.id_to_piece(i) for i in ids if not model.is_control(i) and not model.is_unknown(i)]


def train(
    folder: PathLike, lines: Iterable[str], source: str, target: str, vocab_size: int, character_coverage: float
) -> Segmentation:
    """Train a SentencePiece model (unigram) and write it and its record into a folder.

    The same lines give the same model on every machine: the number of threads is fixed, because the sums of the
    training depend on it, and so is the seed that draws the lines of a large corpus.

    Args:
        folder: an existing folder.
        lines: cleaned text of both languages.
        source: source language.
        target: target language.
        vocab_size: of the dictionary, fairseq's four specials included; a small corpus may give fewer pieces.
        character_coverage: share of the text's characters that get a piece; the rarest of the rest become `<unk>`.

    Raises:
        InputError: the size is too small for the characters of the text.
    """
    import sentencepiece

    sentencepiece.set_random_generator_seed(1)
    # Not `model_prefix`: SentencePiece would store the path of the (temporary) folder in the model.
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocab_size,
            character_coverage=character_coverage,
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
            f"`--vocab-size` {vocab_size}: SentencePiece can't make such a vocabulary from this text ({reason}): try a "
            "larger size, or a lower --character-coverage"
        ) from error
    (Path(folder) / MODEL).write_bytes(model.getvalue())
    record = {
        "type": "sentencepiece",
        "model": MODEL,
        "source": source,
        "target": target,
        "vocab_size": vocab_size,
        "character_coverage": character_coverage,
        "sentencepiece_version": sentencepiece.__version__,
    }
    write_lines(Path(folder) / RECORD, json.dumps(record, indent=1, ensure_ascii=False).split("\n"))
    return Segmentation(folder, record)
