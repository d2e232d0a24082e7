"""Corpora that mtdata knows: fetched into its cache over bad connections, unpacked by it, and what came of them.

mtdata fetches as well, but gives up after ten seconds of silence, starts from zero then, and stops at the first address
that is dead. What is in its cache, under its names, it takes from there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import Any

from owf_fairseq.data.downloads import Downloader, DownloadError, Patience
from owf_fairseq.errors import InputError
from owf_fairseq.files.lines import read_lines, write_lines
from owf_fairseq.files.lock import locked
from owf_fairseq.progress import Progress
from owf_fairseq.tables import Report, number

RECORD, NOTES = "corpora.json", "notes.txt"
"""Files beside the training text: what it is made of; and what tables of results are to say of that, line by line."""

TOLERANCE = 0.02
"""Deviation from the expected number of pairs that is worth a note: publishers count empty lines in or out."""


PATIENCE = Patience()


@dataclass(frozen=True)
class Part:
    """A corpus of a training text.

    Attributes:
        name: mtdata's.
        expected: pairs that it should have; None if that is not known.
        found: pairs that it has; None if it was left out.
        kept: pairs of it in the training text.
    """

    name: str
    expected: int | None = None
    found: int | None = None
    kept: int = 0


def choose_corpora(names: Sequence[str], without: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divides corpora into those to fetch, and those to leave out.

    Args:
        names: of all.
        without: names, or patterns such as ``OPUS-ccmatrix-*``.

    Raises:
        InputError: one is no corpus of these, or none is left.
    """
    problems = [
        f"`--without` must be one of {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}, but is '{pattern}'"
        for pattern in without
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    left_out = [name for name in names if any(fnmatchcase(name, pattern) for pattern in without)]
    if names and len(left_out) == len(names):
        problems.append(f"`--without` {' '.join(without)} leaves out every corpus: there would be nothing to train on")
    if problems:
        raise InputError(problems)
    return [name for name in names if name not in left_out], left_out


def prefetch(names: Iterable[str], root: Path, jobs: int = 4, patience: Patience | None = None) -> dict[str, str]:
    """Fetches what corpora are made of into mtdata's cache, several files at a time; what is there already is left.

    Args:
        names: of the corpora, the first ones first.
        root: of the cache.
        jobs: files at a time.
        patience: with servers; by default `PATIENCE`.

    Returns:
        The corpora that can't be had, and why; one of them doesn't hold up the others.

    Raises:
        InputError: mtdata is not installed, or doesn't know a corpus; or another process fetches into the same cache.
    """
    root.mkdir(parents=True, exist_ok=True)  # mtdata makes no folder but the last, when it is imported
    entries = find_entries(names)
    from mtdata.cache import Cache, headers

    cache = Cache(root)
    places: dict[str, Path] = {}
    users: dict[str, list[str]] = {}
    for name, entry in entries.items():
        for url, filename in _addresses(entry):
            places[url] = cache.get_local_path(url, filename=filename, fix_missing=False)
            users.setdefault(url, []).append(name)
    missing = {url: path for url, path in places.items() if not (path.exists() and cache.get_flag_file(path).exists())}
    if not missing:
        return {}
    with (
        locked(root / ".fetching", f"another process is fetching into {root}: wait for it"),
        Progress("MB", None, label="fetched") as progress,
        ThreadPoolExecutor(jobs) as pool,
    ):
        downloader = Downloader(patience or PATIENCE, headers, _counter(progress))

        def fetch(url: str) -> tuple[str, str | None]:
            try:
                downloader.fetch(url, missing[url])
            except (DownloadError, OSError) as error:
                return url, str(error)
            cache.get_flag_file(missing[url]).touch()  # so mtdata knows that it is complete
            progress.say(f"{', '.join(users[url][:3])}: {missing[url].stat().st_size / 1e6:,.1f} MB")
            return url, None

        failed = [(url, why) for url, why in pool.map(fetch, missing) if why is not None]
    return {name: f"{url}: {why}" for url, why in failed for name in users[url]}


def complaints(failures: Mapping[str, str], needed: bool = False) -> list[str]:
    """What to tell of corpora that can't be had; one that is needed can't be left out."""
    return [
        f"{name} can't be fetched ({why}): start again, which goes on where it stopped"
        + ("" if needed else f", or leave it out: `--without {name}`")
        for name, why in failures.items()
    ]


def find_entries(names: Iterable[str]) -> dict[str, Any]:
    """What mtdata knows of corpora.

    Raises:
        InputError: it is not installed, or doesn't know one.
    """
    names = list(names)
    with _quiet():
        try:
            from mtdata.entry import DatasetId
            from mtdata.index import Index
        except ImportError as error:
            raise InputError(f"mtdata can't be imported ({error}): `pip install mtdata==0.5.1`") from error
        index = Index.get_instance()
    entries = {name: DatasetId.parse(name) for name in names}
    unknown = [name for name, entry in entries.items() if entry not in index]
    if unknown:
        raise InputError([f"mtdata knows no corpus {name}: `mtdata list -id` prints all" for name in unknown])
    return {name: index[entry] for name, entry in entries.items()}


def unpacking(
    folder: Path, kind: str, names: Sequence[str], langs: tuple[str, str] | None = None, jobs: int = 1
) -> tuple[list[str], list[tuple[str, str]]]:
    """The command by which mtdata unpacks corpora of two languages, and the files that it makes.

    It skips what it has unpacked before, and leaves joining to us: its order would be another one in each run.

    Args:
        folder: that it works in.
        kind: ``train``, ``dev`` or ``test``.
        names: of the corpora.
        langs: as mtdata names them, in the order that is wanted; by default that of each corpus' name.
        jobs: corpora at a time.

    Returns:
        The command; and for each corpus the two files.
    """
    train = kind == "train"
    languages = [langs or name.split("-")[-2:] for name in names]
    command = ["mtdata", "--no-pbar", "get", "--langs", "-".join(languages[0]), f"--{kind}", *names]
    command += ["--out", str(folder), "--n-jobs", str(jobs), "--fail", "--no-merge", "--compress"]
    parts = folder / ("train-parts" if train else "tests")
    files = [
        (f"{parts / name}.{first}{'.gz' if train else ''}", f"{parts / name}.{second}{'.gz' if train else ''}")
        for name, (first, second) in zip(names, languages, strict=True)
    ]
    return command, files


def read_counts(path: Path, parts: Sequence[Part]) -> list[Part]:
    """What `owf pairs --json` says of corpora, in the order that they were given to it."""
    counts = json.loads(path.read_text(encoding="utf-8"))["corpora"]
    return [
        Part(part.name, part.expected, count["read"], count["written"])
        for part, count in zip(parts, counts, strict=True)
    ]


def describe(parts: Sequence[Part], limit: int | None = None) -> Report:
    """Expected and found pairs of each corpus and in all.

    Args:
        parts: of the training text, and those that were left out.
        limit: pairs to which the text was cut; what follows was not read.
    """
    rows = [
        [part.name, _known(part.expected), "left out" if part.found is None else number(part.found), number(part.kept)]
        for part in parts
    ]
    known = [part.expected for part in parts if part.expected is not None]
    found, kept = sum(part.found or 0 for part in parts), sum(part.kept for part in parts)
    total = sum(known) if known else None
    rows.append(["all", _known(total), number(found), number(kept)])
    notes = [f"no more was read than `--limit` {limit} needs"] if limit is not None else []
    said = list(_notes(parts, limit))
    totals = {"expected": total, "found": found, "kept": kept}
    data = {**totals, "limit": limit, "notes": said, "corpora": [asdict(part) for part in parts]}
    return Report(["corpus", "expected pairs", "found", "kept"], rows, data, [*notes, *said])


def record(folder: Path, report: Report) -> None:
    """Writes what a training text is made of beside it."""
    write_lines(folder / RECORD, report.as_json().split("\n"))
    write_lines(folder / NOTES, report.data["notes"])


def read_notes(folder: Path) -> list[str]:
    """What tables of results are to say of the training text in a folder; nothing if no record is there."""
    path = folder / NOTES
    return read_lines(path) if path.is_file() else []


def _notes(parts: Sequence[Part], limit: int | None) -> Iterator[str]:
    missing = [part for part in parts if part.found is None]
    if missing:
        pairs = ""
        lacking, total = (sum(part.expected or 0 for part in some) for some in (missing, parts))
        if lacking:
            pairs = f" (about {lacking:,} of {total:,} pairs)"
        names = ", ".join(part.name for part in missing[:10]) + (f" and {len(missing) - 10} more" * (len(missing) > 10))
        yield f"the training text lacks {names}{pairs}: left out with `--without`"
    for part in parts:
        if limit is None and part.expected and part.found is not None:
            deviation = part.found / part.expected - 1
            if abs(deviation) > TOLERANCE:
                yield f"{part.name} has {part.found:,} pairs, but about {part.expected:,} were expected"


def _known(pairs: int | None) -> str:
    return "not known" if pairs is None else number(pairs)


def _addresses(entry: Any) -> list[tuple[str, str | None]]:
    """The files of an entry, and mtdata's names for them; none for what it leaves to another library."""
    if entry.ext == "hfds":
        return []
    if entry.in_ext == "opus_xces":
        return [(url, None) for url in (entry.url, *entry.in_paths)]
    if isinstance(entry.url, str):
        return [(entry.url, entry.filename)]
    return [(url, None) for url in entry.url]


def _counter(progress: Progress) -> Any:
    """Counts bytes of several threads in whole megabytes."""
    lock, pending = Lock(), [0]

    def advance(number: int) -> None:
        with lock:
            pending[0] += number
            whole, pending[0] = divmod(pending[0], 1_000_000)
            if whole:
                progress.advance(whole)

    return advance


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the pages that mtdata logs when it makes its index."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)
