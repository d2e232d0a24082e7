"""Makes the text of IWSLT14 German-English from its archive, as fairseq's examples/translation/prepare-iwslt14.sh does.

example:
  python scripts/iwslt14_de_en/text.py --run runs/iwslt14_de_en
  python scripts/iwslt14_de_en/text.py --run runs/iwslt14_de_en --local ~/iwslt14/de-en --cased

Takes train.tags.de-en.{de,en} and the five sets of SETS, IWSLT14.SET.de-en.{de,en}.xml, from the folder `--local`, or
from the archive, which it fetches. Training text: without the lines of metadata, titles and descriptions of talks
included; pairs with a side of more than 175 of Moses' tokens, or one that has more than 1.5 times as many as the
other, are left out; every 23rd pair that is left is to validate on. Test: all five sets. Writes RUN/original/test.en,
RUN/raw/{train,valid,test}.{de,en}, where test.en is in small letters like what the models write, and RUN/raw/flags, the
flags of `owf prepare` that this needs.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

from sacremoses import MosesTokenizer

from owf_fairseq.data.downloads import Downloader, DownloadError
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import stream_lines, write_lines

URL = "http://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"
LANGS = ("de", "en")
SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
"""fairseq's test data, in its order."""
MAX_TOKENS, MAX_RATIO, VALID_EVERY = 175, 1.5, 23
EXPECTED = {"train": 160_239, "valid": 7_283, "test": 6_750}
"""What others report of fairseq's preparation."""

Pair = tuple[str, str]

_KEPT_TAGS = re.compile(r"</?(title|description)>")
_OTHER_TAG = re.compile(r"\s*</?[a-z]+\b[^>]*>")
_SEGMENT = re.compile(r"<seg\b[^>]*>(.*)</seg>")


def pairs_of(folder: Path, name: str, text: Callable[[str], str | None]) -> Iterator[Pair]:
    """Pairs of lines of two files that are text.

    Args:
        folder: with the files.
        name: of the two, with `{}` for the language.
        text: what is text of a line; None for one that is not.

    Raises:
        InputError: a file can't be read, or one has text in a line where the other has none.
    """
    paths = [folder / name.format(lang) for lang in LANGS]
    for number, sides in enumerate(zip_longest(*map(stream_lines, paths)), 1):
        texts = [None if side is None else text(side) for side in sides]
        if (texts[0] is None) != (texts[1] is None):
            other = paths[texts[0] is not None]
            raise InputError(
                f"{other}, line {number} is no text, but the other file's is: the files don't belong together"
            )
        if texts[0] is not None and texts[1] is not None:
            yield texts[0].strip(), texts[1].strip()


def of_training(line: str) -> str | None:
    """The text of a line of train.tags: a sentence, a title or a description."""
    line = _KEPT_TAGS.sub("", line)
    return None if _OTHER_TAG.match(line) else line


def of_set(line: str) -> str | None:
    """The text of a line of a test set, with straight apostrophes, as in the training text."""
    found = _SEGMENT.search(line)
    return html.unescape(found[1]).replace("\u2019", "'") if found else None


class Cleaning:
    """Which pairs are trained on, by their numbers of Moses' tokens (clean-corpus-n -ratio 1.5, 1 to 175)."""

    def __init__(self) -> None:
        self.tokenizers = [MosesTokenizer(lang) for lang in LANGS]

    def keeps(self, pair: Pair) -> bool:
        """Whether a pair is neither empty nor too long nor too unequal."""
        counts = [len(tok.tokenize(side)) for tok, side in zip(self.tokenizers, pair, strict=True)]
        return min(counts) > 0 and max(counts) <= min(MAX_TOKENS, MAX_RATIO * min(counts))


def prepare(folder: Path, run: Path, limit: int | None, lowercase: bool) -> dict[str, int]:
    """Write all texts; see the module.

    Returns:
        The pairs of each split.

    Raises:
        InputError: see `pairs_of`; or nothing is left.
    """
    splits: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    cleaning, kept = Cleaning(), 0
    for number, pair in enumerate(pairs_of(folder, "train.tags.de-en.{}", of_training)):
        if number == limit:
            break
        if cleaning.keeps(pair):
            kept += 1
            splits["train" if kept % VALID_EVERY else "valid"].append(pair)
    for name in SETS:
        splits["test"] += pairs_of(folder, f"IWSLT14.{name}.de-en.{{}}.xml", of_set)
    if empty := [split for split, pairs in splits.items() if not pairs]:
        raise InputError(f"{folder} has no text for {' and '.join(empty)}: is it what the archive holds, whole?")
    for part in ("original", "raw"):
        (run / part).mkdir(parents=True, exist_ok=True)
    write_lines(run / "original/test.en", [target for _, target in splits["test"]])
    if lowercase:
        splits["test"] = [(source, target.lower()) for source, target in splits["test"]]
    for split, pairs in splits.items():
        for side, lang in enumerate(LANGS):
            write_lines(run / f"raw/{split}.{lang}", [pair[side] for pair in pairs])
    write_lines(run / "raw/flags", ["--lowercase" if lowercase else ""])
    return {split: len(pairs) for split, pairs in splits.items()}


def fetch(folder: Path) -> Path:
    """Fetch the archive and unpack it, unless that was done, and return the folder with the files.

    Raises:
        DownloadError: it can't be fetched.
        InputError: it is no such archive.
    """
    archive = folder / "de-en.tgz"
    if not archive.exists():
        Downloader().fetch(URL, archive)
    try:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    except (EOFError, OSError, tarfile.TarError, zlib.error) as error:
        raise InputError(
            f"{archive} is damaged, or no archive ({error}): remove it, and it is fetched again"
        ) from error
    return folder / "de-en"


def main(argv: list[str] | None = None) -> int:
    """Fetch, unless the text is there, and prepare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="the run's folder, to write to")
    parser.add_argument("--local", type=Path, metavar="DIR", help="the archive's files; nothing is fetched")
    parser.add_argument("--limit", type=int, metavar="N", help="read the first N pairs of the training text")
    parser.add_argument("--cased", action="store_true", help="keep capitals; fairseq's preparation does not")
    args = parser.parse_args(argv)
    try:
        found = prepare(args.local or fetch(args.run / "download"), args.run, args.limit, not args.cased)
    except InputError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return 2
    except DownloadError as error:
        print(f"{URL} can't be fetched ({error}); with --local DIR nothing is", file=sys.stderr)
        return 1
    for split, pairs in found.items():
        expected = "" if args.limit and split != "test" else f" (fairseq's preparation gives {EXPECTED[split]:,})"
        print(f"{split}: {pairs:,} pairs{expected}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
