"""Text to pieces and back, as recorded beside the data, so that no later command needs a flag for it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from owf_fairseq.data.languages import short_code
from owf_fairseq.errors import InputError
from owf_fairseq.files.fingerprint import SEGMENTATION_RECORD
from owf_fairseq.files.json_object import is_plain_name, read_object, wrong_types
from owf_fairseq.files.lines import PathLike, read_lines
from owf_fairseq.files.visible import shown

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
"""fairseq's own symbols, in its order: they start every dictionary, and no piece may be spelt like one of them."""

# fairseq splits a line at everything that Python calls white space, also at U+0085 or U+2028: inside a piece it would
# cut the piece in two. The rest are other control characters, and SentencePiece's own sign for a space.
_SPACES = re.compile("[\\s\\x00-\\x1f\\x7f-\\x9f\u2581]+")


def clean(line: str) -> str:
    """Put one space where there is white space or a control character, and compose characters (Unicode NFC).

    What shows nothing becomes empty, and a byte order mark before text is none of it. Nothing else is changed, so that
    a model can learn to write what the references have (full-width punctuation, say).
    """
    return shown(_SPACES.sub(" ", unicodedata.normalize("NFC", line)).strip()).strip()


def read_segmentation_record(folder: PathLike) -> dict[str, Any]:
    """What `owf prepare` recorded in a folder of binary data: the type, the languages, and the names of files in it.

    Raises:
        InputError: there is no record, it is of no known type, or a file that it names is not in the folder. One that
            names a path, which may be anywhere, is refused: commands read and copy what it names.
    """
    path = Path(folder) / SEGMENTATION_RECORD
    try:
        record = read_object(path)
    except InputError as error:
        raise InputError(f"{problem}: did `owf prepare` make {folder}?" for problem in error.problems) from error
    name = record.get("type")
    if not isinstance(name, str) or name not in KINDS:
        raise InputError(
            f"{path} is of type {name!r}, not one of {', '.join(KINDS)}: make the data again with `owf prepare`"
        )
    files = KINDS[name].FILES
    missing = wrong_types(record, dict.fromkeys(("source", "target", *files), str))
    if not isinstance(record.get("lowercase", False), bool):
        missing.append("lowercase")
    if missing:
        raise InputError(f"{path} lacks {', '.join(sorted(missing))}: make the data again with `owf prepare`")
    for file in files:
        if not is_plain_name(record[file]):
            raise InputError(f"{path} names {record[file]!r}, which is no name of a file in {folder}: it is not read")
        if not os.path.isfile(Path(folder) / record[file]):
            raise InputError(f"{path} names {record[file]}, which is not in {folder}")
    return record


class Segmentation(ABC):
    """How text becomes pieces, and pieces become text.

    Args:
        source, target: languages.
    """

    lowercase = False
    """Whether pieces are in small letters."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target

    @staticmethod
    def load(folder: PathLike) -> Segmentation:
        """Load what `owf prepare` recorded in a folder of binary data.

        Raises:
            InputError: there is no record, or it is of no known type.
        """
        record = read_segmentation_record(folder)
        loaded = KINDS[record["type"]].of_record(Path(folder), record)
        loaded.lowercase = record.get("lowercase", False)
        return loaded

    FILES: tuple[str, ...] = ()
    """The record's entries that name files of the folder."""

    @classmethod
    def of_record(cls, folder: Path, record: dict[str, Any]) -> Segmentation:
        """The segmentation that a complete record describes; one of `KINDS` that has more than languages says how."""
        return cls(record["source"], record["target"])

    @abstractmethod
    def pieces(self, line: str, lang: str) -> list[str]:
        """Cut a cleaned line of a language into pieces."""

    def cased(self, text: str) -> str:
        """Write text in small letters, if all pieces are."""
        return text.lower() if self.lowercase else text

    @abstractmethod
    def decode(self, pieces: str) -> str:
        """Join pieces of the target language, separated by spaces, to text."""

    @staticmethod
    def clean(line: str) -> str:
        """Put text into the form that is cut into pieces; what is left of a blank line is empty."""
        return clean(line)

    def encode(self, line: str, lang: str | None = None) -> str:
        """Cut a line of text, by default of the source language, into pieces, with a space between them."""
        # What is spelt like "</s>", or a run of characters that have no piece, must not end a sentence by that.
        pieces = self.pieces(self.clean(line), lang or self.source)
        return " ".join("<unk>" if piece in SPECIALS else piece for piece in pieces)

    def symbols(self, encoded: Iterable[str], size: int | None) -> list[str]:
        """List the pieces for fairseq's dictionary, its specials left out.

        Args:
            encoded: lines as pieces; the most frequent pieces come first.
            size: of the dictionary, specials included; None for all pieces.
        """
        counts = Counter(piece for line in encoded for piece in line.split(" ") if piece not in ("", *SPECIALS))
        ordered = sorted(counts, key=lambda piece: (-counts[piece], piece))
        return ordered if size is None else ordered[: size - len(SPECIALS)]


class SentencePieceSegmentation(Segmentation):
    """A SentencePiece model for both languages.

    Args:
        source, target: languages.
        model: file of the model.
    """

    FILES: tuple[str, ...] = ("model",)

    def __init__(self, source: str, target: str, model: Path) -> None:
        super().__init__(source, target)
        self.processor = _sentencepiece(model)

    @classmethod
    def of_record(cls, folder: Path, record: dict[str, Any]) -> Segmentation:
        return cls(record["source"], record["target"], folder / record["model"])

    def pieces(self, line: str, lang: str) -> list[str]:
        pieces: list[str] = self.processor.encode(self.cased(line), out_type=str)
        return pieces

    def decode(self, pieces: str) -> str:
        """Join pieces to text; the inverse of `encode` up to `clean`."""
        return pieces.replace(" ", "").replace("\u2581", " ").strip()

    def symbols(self, encoded: Iterable[str], size: int | None) -> list[str]:
        """List the model's pieces in its order, whatever the text."""
        return _pieces_of(self.processor)


class SeparateSentencePieceSegmentation(SentencePieceSegmentation):
    """A SentencePiece model for each of the two languages; one dictionary has the pieces of both.

    Args:
        source, target: languages.
        source_model, target_model: the files of their models.
    """

    FILES = ("source_model", "target_model")

    def __init__(self, source: str, target: str, source_model: Path, target_model: Path) -> None:
        super().__init__(source, target, target_model)
        self.processors = {source: _sentencepiece(source_model), target: self.processor}

    @classmethod
    def of_record(cls, folder: Path, record: dict[str, Any]) -> Segmentation:
        return cls(record["source"], record["target"], *(folder / record[entry] for entry in cls.FILES))

    def pieces(self, line: str, lang: str) -> list[str]:
        if lang not in self.processors:
            raise InputError(
                f"the data have a vocabulary for {' and one for '.join(self.processors)}, but none for {lang}: make "
                "them again without `--separate-vocabularies`"
            )
        pieces: list[str] = self.processors[lang].encode(self.cased(line), out_type=str)
        return pieces

    def symbols(self, encoded: Iterable[str], size: int | None) -> list[str]:
        """List the pieces of both models: the source's in its order, then those that only the target's has."""
        return list(dict.fromkeys(piece for model in self.processors.values() for piece in _pieces_of(model)))


def _sentencepiece(model: Path) -> Any:
    import sentencepiece

    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(model))
    except (RuntimeError, OSError) as error:
        raise InputError(f"{model} is not a SentencePiece model: make the data again with `owf prepare`") from error


def _pieces_of(model: Any) -> list[str]:
    ids = range(model.get_piece_size())
    return [model.id_to_piece(i) for i in ids if not model.is_control(i) and not model.is_unknown(i)]


class Moses:
    """Moses' tokens, escaped and with split hyphens as in fairseq's recipes.

    Args:
        source, target: languages; Moses' rules for English serve those that it doesn't know.
    """

    def __init__(self, source: str, target: str) -> None:
        from sacremoses import MosesDetokenizer, MosesTokenizer

        self._tokenizers = {lang: MosesTokenizer(short_code(lang)) for lang in (source, target)}
        self._detokenizer = MosesDetokenizer(short_code(target))

    def tokens(self, line: str, lang: str) -> list[str]:
        """Cut a line of a language into tokens."""
        tokens: list[str] = self._tokenizers[lang].tokenize(line, aggressive_dash_splits=True)
        return tokens

    def join(self, tokens: list[str]) -> str:
        """Join tokens of the target language to text."""
        text: str = self._detokenizer.detokenize(tokens)
        return text


class MosesBpeSegmentation(Segmentation):
    """Moses' tokens, cut by joint BPE (subword-nmt).

    Args:
        source, target: languages.
        codes: file of the merge operations, as subword-nmt writes it.
    """

    FILES = ("codes",)

    def __init__(self, source: str, target: str, codes: Path) -> None:
        from subword_nmt.apply_bpe import BPE

        super().__init__(source, target)
        self.moses = Moses(source, target)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                self.bpe = BPE(io.StringIO("\n".join(read_lines(codes))))
        except (SystemExit, ValueError, IndexError) as error:  # subword-nmt ends the program
            raise InputError(f"{codes} holds no BPE codes of subword-nmt's") from error

    @classmethod
    def of_record(cls, folder: Path, record: dict[str, Any]) -> Segmentation:
        return cls(record["source"], record["target"], folder / record["codes"])

    def pieces(self, line: str, lang: str) -> list[str]:
        # after Moses, which needs capitals to see where a sentence ends
        tokens = [self.cased(token) for token in self.moses.tokens(line, lang)]
        pieces: list[str] = self.bpe.segment_tokens(tokens)
        return pieces

    def decode(self, pieces: str) -> str:
        return self.moses.join(f"{pieces} ".replace("@@ ", "").split())


class NoSegmentation(Segmentation):
    """Text that is in pieces already, separated by spaces."""

    @staticmethod
    def clean(line: str) -> str:
        """Leave the pieces as they are: SentencePiece's, for example, have its sign for a space."""
        return shown(" ".join(re.split("[\\s\\x00-\\x1f\\x7f-\\x9f]+", line)).strip()).strip()

    def pieces(self, line: str, lang: str) -> list[str]:
        return self.cased(line).split(" ") if line else []

    def decode(self, pieces: str) -> str:
        return pieces


KINDS: dict[str, type[Segmentation]] = {
    "sentencepiece": SentencePieceSegmentation,
    "separate-sentencepiece": SeparateSentencePieceSegmentation,
    "moses-bpe": MosesBpeSegmentation,
    "none": NoSegmentation,
}
"""By the name in the record."""
