"""Raw parallel text -> pieces -> fairseq's binary data, with one dictionary for both languages."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.data.folders import check_output, output_folder
from owf_fairseq.data.lines import PathLike, read_lines, write_lines
from owf_fairseq.data.segmentation import KINDS, SPECIALS, Segmentation
from owf_fairseq.data.train_segmentation import TrainingText, train
from owf_fairseq.errors import InputError

COMMAND = "owf prepare"
ENCODED = "encoded"
"""The folder, inside the output, of the text as pieces."""


@dataclass(frozen=True)
class Prepared:
    """What `prepare` made.

    Attributes:
        source: source language.
        target: target language.
        vocabulary: size of the dictionary, specials included.
        pairs: for each split, its pairs.
        tokens: for each split and language, as `train.en`, its pieces, without end-of-sentence symbols.
        unknown: for each split and language, its pieces that are not in the dictionary.
        dropped: pairs of the training data that were left out, because a side was empty.
    """

    source: str
    target: str
    vocabulary: int
    pairs: dict[str, int]
    tokens: dict[str, int]
    unknown: dict[str, int]
    dropped: int


def prepare(
    prefixes: dict[str, str],
    langs: str,
    output: PathLike,
    vocab_size: int = 32000,
    character_coverage: float = 0.9999,
    segmentation: str = "sentencepiece",
) -> Prepared:
    """Make the folder that `fairseq-train` reads from files `PREFIX.source` and `PREFIX.target`.

    The segmentation is made from the training data's two sides together; it, its record `segmentation.json` and the
    text as pieces (`encoded/`) go to the same folder. The folder appears only when it is complete. All text is held
    in memory: about a gigabyte for two million pairs.

    Args:
        prefixes: `{"train": PREFIX, "valid": PREFIX, "test": PREFIX}`; the last may be missing.
        langs: source and target language with a hyphen between, as the files end.
        output: the folder to make.
        vocab_size, character_coverage: see `train_segmentation.TrainingText`.
        segmentation: a key of `segmentation.KINDS`.

    Raises:
        InputError: all that is wrong with the arguments and files, together.
    """
    problems = check_output(output, COMMAND)
    if segmentation not in KINDS:
        problems.append(f"`--segmentation` must be one of {', '.join(KINDS)}, but is {segmentation!r}")
    if vocab_size <= len(SPECIALS):
        problems.append(f"`--vocab-size` must be above {len(SPECIALS)}, but is {vocab_size}")
    if not 0.9 <= character_coverage <= 1:
        problems.append(f"`--character-coverage` must be from 0.9 to 1, but is {character_coverage}")
    try:
        source, target = _split_langs(langs, prefixes["train"])
    except InputError as error:
        raise InputError([*problems, *error.problems]) from error
    text: dict[str, tuple[list[str], list[str]]] = {}
    dropped = 0
    for split, prefix in prefixes.items():
        try:
            sides, empty = _read(split, prefix, source, target, KINDS.get(segmentation, Segmentation).clean)
        except InputError as error:
            problems += error.problems
            continue
        text[split] = sides
        dropped += empty
    if problems:
        raise InputError(problems)

    with output_folder(output, COMMAND) as folder:
        langs_of = (source, target)
        made_from = TrainingText(dict(zip(langs_of, text["train"], strict=True)), vocab_size, character_coverage)
        model = train(segmentation, folder, made_from)
        encoded = {
            f"{split}.{lang}": [model.encode(line, lang) for line in side]
            for split, sides in text.items()
            for lang, side in zip(langs_of, sides, strict=True)
        }
        # BPE has its own number, that of the merges, and each of its pieces can be written
        size = None if segmentation == "moses-bpe" else vocab_size
        symbols = model.symbols((line for lang in langs_of for line in encoded[f"train.{lang}"]), size)
        known = set(symbols)
        dictionary = folder / "dict.txt"
        # The second column is a count, which nothing here uses: the pieces are in order already.
        write_lines(dictionary, (f"{symbol} 1" for symbol in symbols))
        tokens: dict[str, int] = {}
        unknown: dict[str, int] = {}
        for name, lines in encoded.items():
            write_lines(folder / ENCODED / name, lines)
            pieces = [piece for line in lines for piece in line.split(" ")]
            tokens[name] = len(pieces)
            unknown[name] = sum(piece not in known for piece in pieces)
        _binarize(folder, dictionary, list(text), source, target)
        dictionary.unlink()
    return Prepared(
        source=source,
        target=target,
        vocabulary=len(SPECIALS) + len(symbols),
        pairs={split: len(sides[0]) for split, sides in text.items()},
        tokens=tokens,
        unknown=unknown,
        dropped=dropped,
    )


def _split_langs(langs: str, prefix: str) -> tuple[str, str]:
    """Split `source-target` where the training files are there: a language may hold a hyphen itself."""
    parts = langs.split("-")
    ways = [("-".join(parts[:i]), "-".join(parts[i:])) for i in range(1, len(parts))]
    ways = [way for way in ways if way[0] and way[1] and way[0] != way[1]]
    if not ways:
        raise InputError(f"`--langs` must be two different languages, as in en-de, but is {langs!r}")
    for way in ways:
        if all(Path(f"{prefix}.{lang}").is_file() for lang in way):
            return way
    looked = " or ".join(f"{prefix}.{source} and {prefix}.{target}" for source, target in ways)
    raise InputError(f"`--train` {prefix}: there must be {looked}")


def _read(
    split: str, prefix: str, source: str, target: str, clean: Callable[[str], str]
) -> tuple[tuple[list[str], list[str]], int]:
    """Read and clean one split.

    Returns:
        The two sides; and how many pairs with an empty side were left out, which only the training data may have.
    """
    problems: list[str] = []
    sides: list[list[str]] = []
    paths = [f"{prefix}.{lang}" for lang in (source, target)]
    for path in paths:
        try:
            sides.append([clean(line) for line in read_lines(path)])
        except InputError as error:
            problems += [f"--{split} {prefix}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    lengths = [len(side) for side in sides]
    if lengths[0] != lengths[1]:
        raise InputError(
            f"--{split} {prefix}: {paths[0]} has {lengths[0]} lines, but {paths[1]} has {lengths[1]}: line n of one "
            "must be the translation of line n of the other"
        )
    filled = [n for n, pair in enumerate(zip(*sides, strict=True)) if all(pair)]
    empty = lengths[0] - len(filled)
    if split != "train" and empty:
        where = [
            f"{path}, line {n}"
            for path, side in zip(paths, sides, strict=True)
            for n, line in enumerate(side, 1)
            if not line
        ]
        listed = "; ".join(where[:5]) + (f" and {len(where) - 5} more" if len(where) > 5 else "")
        raise InputError(f"--{split} {prefix}: empty sentences: {listed}; remove them from both files")
    if not filled:
        raise InputError(f"--{split} {prefix}: no pair of sentences in {paths[0]} and {paths[1]}")
    return ([sides[0][n] for n in filled], [sides[1][n] for n in filled]), empty


def _binarize(folder: Path, dictionary: Path, splits: list[str], source: str, target: str) -> None:
    """Run fairseq-preprocess in this process, with one dictionary for both languages."""
    arguments = ["--source-lang", source, "--target-lang", target, "--destdir", str(folder), "--workers", "1"]
    arguments += ["--joined-dictionary", "--srcdict", str(dictionary)]
    for split in splits:
        arguments += [f"--{split}pref", str(folder / ENCODED / split)]
    with _quiet("fairseq_cli.preprocess"):
        from fairseq import options
        from fairseq_cli import preprocess

        preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
    # It names the temporary folder, and what it tells is in `Prepared`.
    (folder / "preprocess.log").unlink()


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence fairseq, and close the log file that a logger of it leaves open."""
    logger, disabled = logging.getLogger(name), logging.root.manager.disable
    handlers = list(logger.handlers)
    logging.disable(logging.INFO)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(disabled)
        for handler in set(logger.handlers) - set(handlers):
            logger.removeHandler(handler)
            handler.close()
