#!/usr/bin/env python3
"""Extracts the quickstart's corpus: the human-translated interface texts in the wheel of the `homeassistant` package.

The wheel (Apache-2.0) is a zip file that pip can fetch anywhere. It holds, for every component and language, a nested
table of strings, `homeassistant/components/<component>/translations/<language>.json`; two languages are joined on
component and key. Nothing of the wheel is installed.

example:
  python scripts/quickstart/corpus.py --wheel homeassistant-2026.11.0-py3-none-any.whl --langs en-de --output corpus
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from owf_fairseq.data.languages import has_spaces
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.folders import check_output, output_folder
from owf_fairseq.files.lines import PathLike, write_lines

COMMAND = "scripts/quickstart/corpus.py"
SPLITS = ("train", "valid", "test")

Pair = tuple[str, str]

_TABLE = re.compile(r"homeassistant/components/([^/]+)/translations/([^/]+)\.json")
_MARKUP = re.compile(r"[{}<>\[\]`|*_\\$%\n\r]|https?:|\d{3}")
"""Placeholders, markup, paths, references to other strings, and numbers of three digits or more."""


@dataclass(frozen=True)
class Filter:
    """Which pairs are kept. The lengths are of the English side, or of the source side when neither is English.

    Attributes:
        min_words: the fewest words of a pair.
        min_held_out_words: the fewest words of a pair in valid and test: single words and names are no sentences.
        max_words: the most words of a pair.
        max_ratio: a pair is dropped when a side has more than this many times the other's words, plus 3.
        held_out: about how many pairs valid and test are to have, each.
        max_held_out_per_mille: of a thousand pairs, at most this many go to valid, and to test, in a small corpus.
        min_pairs: fewer pairs in train than this are an error.
    """

    min_words: int = 1
    min_held_out_words: int = 3
    max_words: int = 20
    max_ratio: float = 2.0
    held_out: int = 550
    max_held_out_per_mille: int = 60
    min_pairs: int = 100


@dataclass(frozen=True)
class QuickstartCorpus:
    """The pairs of each split, and how they came about.

    Attributes:
        source: the source language, as the wheel spells it.
        target: the target language.
        pairs: for each of `SPLITS`, its pairs (source, target) in an order that depends on the pairs alone.
        counts: how many pairs each step left or dropped.
    """

    source: str
    target: str
    pairs: dict[str, list[Pair]]
    counts: dict[str, int]


def extract(wheel: PathLike, langs: str, limit: int | None = None, keep: Filter | None = None) -> QuickstartCorpus:
    """Read the parallel text of two languages, filtered and split.

    A pair's split depends on the words of its English side alone (of its source side when neither is English), whatever
    their case and punctuation. A training pair that still shares a side with a held-out pair is dropped, so that no
    sentence of either language is in two splits; and in valid and test every sentence has one translation.

    Args:
        wheel: path of the wheel.
        langs: source and target language with a hyphen between, for example `en-de` or `en-zh-Hans`.
        limit: at most this many pairs in each split.
        keep: what to keep; the default is the quickstart's choice.

    Raises:
        InputError: the wheel can't be read or has no translations, or a language, or enough pairs, are not in it.
    """
    keep = keep or Filter()
    tables = _open_tables(wheel)
    source, target = choose_langs(langs, sorted({lang for _, lang in tables}))
    counted = _join(wheel, tables, source, target)
    counts = {"joined": len(counted)}
    pivot = 1 if _is_english(target) and not _is_english(source) else 0
    pivot_lang, other_lang = (target, source) if pivot else (source, target)

    candidates: list[tuple[Pair, int]] = []
    for pair, _ in sorted(counted.items(), key=lambda item: (-item[1], _digest("\t".join(item[0])))):
        words, other_words = _words(pair[pivot], pivot_lang), _words(pair[1 - pivot], other_lang)
        if any(_MARKUP.search(side) for side in pair) or pair[0].casefold() == pair[1].casefold():
            continue
        if not keep.min_words <= words <= keep.max_words:
            continue
        if words > keep.max_ratio * other_words + 3 or other_words > keep.max_ratio * words + 3:
            continue
        candidates.append((pair, words))
    counts["filtered"] = len(candidates)
    long_enough = sum(words >= keep.min_held_out_words for _, words in candidates)
    per_mille = min(keep.max_held_out_per_mille, 1000 * keep.held_out // max(long_enough, 1))
    kept: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    for pair, words in candidates:
        split = _split(pair[pivot], per_mille)
        if split == "train" or words >= keep.min_held_out_words:
            kept[split].append(pair)

    pairs: dict[str, list[Pair]] = {}
    seen: tuple[set[str], set[str]] = (set(), set())
    for split in reversed(SPLITS):
        # The most frequent translation comes first, so that it is the one that is kept.
        taken = [set(seen[0]), set(seen[1])]
        pairs[split] = []
        for pair in kept[split]:
            keys = [_key(side) for side in pair]
            if keys[0] in taken[0] or keys[1] in taken[1]:
                continue
            pairs[split].append(pair)
            for side in (0, 1):
                seen[side].add(keys[side])
                if split != "train":
                    taken[side].add(keys[side])
        # Frequency must not order the output: a limit would then keep the most frequent ones.
        pairs[split].sort(key=lambda pair: _digest("\t".join(pair)))
        if limit is not None:
            pairs[split] = pairs[split][:limit]
        counts[split] = len(pairs[split])

    _check_enough(pairs, langs, keep, limit)
    return QuickstartCorpus(source, target, pairs, counts)


def write(
    corpus: QuickstartCorpus, output: PathLike, keep: Filter | None = None, origin: dict[str, object] | None = None
) -> None:
    """Write `{train,valid,test}.{source,target}` and `corpus.json` (how it was made) into a new folder.

    Raises:
        InputError: the folder holds something that this script didn't make.
    """
    with output_folder(output, COMMAND) as folder:
        for split in SPLITS:
            write_lines(folder / f"{split}.{corpus.source}", (pair[0] for pair in corpus.pairs[split]))
            write_lines(folder / f"{split}.{corpus.target}", (pair[1] for pair in corpus.pairs[split]))
        record = {
            "source": corpus.source,
            "target": corpus.target,
            "counts": corpus.counts,
            "filter": asdict(keep or Filter()),
            "origin": origin or {},
        }
        write_lines(folder / "corpus.json", json.dumps(record, indent=1).split("\n"))


def choose_langs(langs: str, available: list[str]) -> Pair:
    """Split `source-target`, where a language may itself hold a hyphen, by the languages that there are.

    Raises:
        InputError: no hyphen divides `langs` into two different languages of `available`; the message lists these.
    """
    parts = langs.split("-")
    ways = [("-".join(parts[:i]), "-".join(parts[i:])) for i in range(1, len(parts))]
    for source, target in ways:
        if source in available and target in available and source != target:
            return source, target
    listed = ", ".join(available)
    if not ways or any(source == target for source, target in ways):
        raise InputError(
            f"`--langs` must be two different languages, as in en-de, but is {langs!r}; there are: {listed}"
        )
    unknown = min(([lang for lang in way if lang not in available] for way in ways), key=len)
    raise InputError(f"`--langs` {langs!r}: the wheel has no {' and no '.join(map(repr, unknown))}; it has: {listed}")


def _open_tables(wheel: PathLike) -> dict[Pair, str]:
    """List the string tables in the wheel: (component, language) -> name in the zip file."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
    except OSError as error:
        raise InputError(f"`--wheel` {wheel} can't be read: {error.strerror or error}") from error
    except zipfile.BadZipFile as error:
        raise InputError(f"`--wheel` {wheel} is not a zip file, or only part of one: download it again") from error
    tables = {(match[1], match[2]): match[0] for match in map(_TABLE.fullmatch, names) if match}
    if not tables:
        raise InputError(
            f"`--wheel` {wheel} holds no homeassistant/components/*/translations/*.json: is it homeassistant's wheel?"
        )
    return tables


def _join(wheel: PathLike, tables: dict[Pair, str], source: str, target: str) -> Counter[Pair]:
    """Join the tables of two languages on component and key, and count the pairs that differ."""
    counted: Counter[Pair] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for component in sorted({component for component, _ in tables}):
            names = [tables.get((component, lang)) for lang in (source, target)]
            if names[0] is None or names[1] is None:
                continue
            sides = [dict(_flatten(_load(wheel, archive, name))) for name in names if name]
            for key, text in sides[0].items():
                pair = (_one_line(text), _one_line(sides[1].get(key, "")))
                if pair[0] and pair[1] and pair[0] != pair[1]:
                    counted[pair] += 1
    return counted


def _load(wheel: PathLike, archive: zipfile.ZipFile, name: str) -> object:
    try:
        return json.loads(archive.read(name).decode("utf-8"))
    except (ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"`--wheel` {wheel}: {name} is damaged ({error}): download the wheel again") from error


def _flatten(table: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the strings of a nested table with their paths."""
    if isinstance(table, dict):
        for key, value in table.items():
            yield from _flatten(value, (*path, key))
    elif isinstance(table, str):
        yield path, table


def _one_line(text: str) -> str:
    """Leave a line feed inside the text, which the filter sees; any other white space becomes one space."""
    return "\n".join(" ".join(line.split()) for line in text.strip().split("\n"))


def _words(text: str, lang: str) -> int:
    """Count words; where a language is written without spaces, two characters count as a word."""
    if not has_spaces(lang):
        return (len("".join(text.split())) + 1) // 2
    return len(text.split())


def _is_english(lang: str) -> bool:
    return lang.split("-")[0] == "en"


def _key(text: str) -> str:
    """Reduce a text to its words, so that a capital or a full stop doesn't make it another sentence."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text


def _digest(text: str) -> int:
    # Not hash(): that differs from one process to the next.
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")


def _split(text: str, per_mille: int) -> str:
    bucket = _digest(_key(text)) % 1000
    if bucket < per_mille:
        return "test"
    return "valid" if bucket < 2 * per_mille else "train"


def _check_enough(pairs: dict[str, list[Pair]], langs: str, keep: Filter, limit: int | None) -> None:
    wanted = keep.min_pairs if limit is None else min(limit, keep.min_pairs)
    if len(pairs["train"]) < wanted or not pairs["valid"] or not pairs["test"]:
        found = ", ".join(f"{len(pairs[split])} for {split}" for split in SPLITS)
        raise InputError(
            f"`--langs` {langs}: too few pairs are left after filtering ({found}; at least {wanted} for train and 1 "
            "for the others are needed): choose another pair of languages"
        )


def _origin(output: PathLike) -> object:
    """What a folder of this script was made of; None if it is none, or not known."""
    try:
        with open(os.path.join(output, "corpus.json"), encoding="utf-8") as file:
            return json.load(file)["origin"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", required=True, metavar="FILE", help="the wheel, as pip download fetched it")
    parser.add_argument(
        "--langs", required=True, metavar="SRC-TGT", help="two languages: en-de, en-ro, en-zh-Hans, ..."
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to make: {train,valid,test}.{SRC,TGT}")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N pairs in each split (for trials)")
    args = parser.parse_args(argv)
    problems = check_output(args.output, COMMAND)
    origin = {"langs": args.langs, "limit": args.limit, "wheel": os.path.basename(args.wheel)}
    if not problems and _origin(args.output) == origin:
        print(f"{args.output} was made before with the same settings")
        return 0
    if args.limit is not None and args.limit < 1:
        problems.append(f"`--limit` must be at least 1, but is {args.limit}")
    corpus = collect(problems, lambda: extract(args.wheel, args.langs, args.limit))
    if problems or corpus is None:
        for problem in problems:
            print(f"corpus: {problem}", file=sys.stderr)
        return 2
    counts = corpus.counts
    write(corpus, args.output, origin=origin)
    print(f"{args.langs}: {counts['joined']} pairs, of them {counts['filtered']} after filtering")
    print(", ".join(f"{split} {counts[split]}" for split in SPLITS) + f" pairs -> {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
