"""`owf shortlist`: from binary data to the target symbols that each source symbol may be translated with.

Training pairs are aligned some hundred thousand at a time, so that the memory is bounded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from owf_fairseq import __version__
from owf_fairseq.decoding.vocabulary_map import VocabularyMap
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.job import Job, OutputFile, files_in
from owf_fairseq.files.lines import PathLike, atomic_path
from owf_fairseq.files.outputs import write_output, writing
from owf_fairseq.files.work_folder import WorkFolder
from owf_fairseq.progress import Progress
from owf_fairseq.shortlist.alignment import LinkCounts, check_aligner, count_links
from owf_fairseq.shortlist.coverage import Coverage, cover
from owf_fairseq.shortlist.prepared_pairs import PreparedPairs, shard_folders
from owf_fairseq.shortlist.selection import ShortlistOptions, select
from owf_fairseq.shortlist.sentences import NumberedSentences, Numbers, Vocabulary

COMMAND = "owf shortlist"
SHORTLIST = "shortlist"
ALIGNED_TOGETHER = 250_000
"""Pairs that are aligned together."""
_LONGEST = 300
"""Pieces of a side: the aligner takes 1,023, and long lines say little of which word is which."""
_KEPT = 2
"""Times the targets that are wanted in the end, which are kept of a chunk for each source symbol."""
_STEP = "align"


@dataclass(frozen=True)
class Shortlist:
    """What was made.

    Attributes:
        source, target: languages.
        pairs: that were aligned. skipped: that were not, because a side is empty or too long.
        always: symbols that any translation may have.
        sources: symbols with targets of their own. targets: how many these have, in the mean.
        coverage: of the validation data; None if there are none.
    """

    source: str
    target: str
    pairs: int
    skipped: int
    always: int
    sources: int
    targets: float
    coverage: Coverage | None


def make_shortlist(
    data: Sequence[PathLike],
    output: PathLike,
    json_file: PathLike | None = None,
    langs: str | None = None,
    options: ShortlistOptions | None = None,
    overwrite: bool = False,
) -> Shortlist | None:
    """Makes a vocabulary map for CTranslate2. After an interruption, the same call goes on where it was.

    Args:
        data: folders of binary data, see ``PreparedPairs.find``.
        output: the file to write.
        json_file: gets what is returned, and the options.
        langs: source and target with a hyphen between, if not in the order in which the data's files are named.
        options: what is in it; by default those of the class.
        overwrite: make it again, also if it was made with other options.

    Returns:
        What was made; None if it was made before, of the same data.

    Raises:
        InputError: with every problem of the arguments and the data.
    """
    options = options or ShortlistOptions()
    job = Job(
        COMMAND,
        {"--langs": langs, **{f"--{name}": value for name, value in vars(options).items()}},
        {"DATA": data},
        [OutputFile("--output", output), OutputFile("--json", json_file, SHORTLIST)],
        overwrite=overwrite,
    )
    job.reads(path for folder in shard_folders(data) if os.path.isdir(folder) for path in files_in(folder))
    if job.is_done():
        return None
    problems = [*options.problems(), *job.problems()]
    collect(problems, check_aligner)
    pairs = collect(problems, partial(PreparedPairs.find, data, langs))
    if problems or pairs is None:
        raise InputError(problems)
    final = Path(os.path.abspath(output))
    record = job.record(final)
    settings = {**record["settings"], "version": __version__, "input files": record["inputs"]}
    with writing("--output", output), WorkFolder(final.parent / f".{final.name}.partial", settings) as work:
        made, result = _make(pairs, options, work)
        made.write(final)
    if json_file is not None:
        found = {"kind": SHORTLIST, "options": asdict(options), **asdict(result)}
        write_output("--json", json_file, json.dumps(found, indent=1).split("\n"))
    job.note()
    return result


def _make(pairs: PreparedPairs, options: ShortlistOptions, work: WorkFolder) -> tuple[VocabularyMap, Shortlist]:
    dictionaries = pairs.folders[0].dictionaries()
    source, target = (
        Vocabulary(dictionary.symbols, lang) for dictionary, lang in zip(dictionaries, pairs.langs, strict=True)
    )
    made = select(*_count(pairs, source, target, options, work), source, target, options)
    number = pairs.number("valid")
    texts = (
        ([source.symbols[n] for n in one], [target.symbols[n] for n in other])
        for one, other in pairs.some("valid", number, 0, number)
    )
    done = work.results[_STEP].values()
    result = Shortlist(
        *pairs.langs,
        sum(chunk["pairs"] for chunk in done),
        sum(chunk["skipped"] for chunk in done),
        len(made.always),
        len(made.by_source),
        sum(map(len, made.by_source.values())) / max(len(made.by_source), 1),
        cover(made, texts, len(target)) if number else None,
    )
    return made, result


def _count(
    pairs: PreparedPairs, source: Vocabulary, target: Vocabulary, options: ShortlistOptions, work: WorkFolder
) -> tuple[LinkCounts, Numbers]:
    """The links of all chunks, and how often the training data have each target symbol."""
    number = min(options.pairs, pairs.number("train"))
    kept = _KEPT * options.best
    links = LinkCounts.of(np.empty(0, np.int64))
    frequency = np.zeros(len(target), np.int64)
    with Progress("pairs", number, label="aligning") as progress:
        for chunk, start in enumerate(range(0, number, ALIGNED_TOGETHER)):
            stop = min(start + ALIGNED_TOGETHER, number)
            path = work.path / f"{chunk:06d}.npz"
            if chunk not in work.results.get(_STEP, {}):
                some = list(pairs.some("train", number, start, stop))
                fit = [pair for pair in some if all(0 < len(side) <= _LONGEST for side in pair)]
                sides = NumberedSentences.of(pair[0] for pair in fit), NumberedSentences.of(pair[1] for pair in fit)
                found = count_links(*sides, (source, target)).best(len(target), kept)
                counted = np.bincount(sides[1].tokens, minlength=len(target))
                with atomic_path(path) as place, open(place, "wb") as file:
                    np.savez(file, keys=found.keys, counts=found.counts, frequency=counted)
                work.record(_STEP, chunk, {"pairs": len(fit), "skipped": len(some) - len(fit)})
            with np.load(path) as saved:
                links = LinkCounts.together([links, LinkCounts(saved["keys"], saved["counts"])])
                links = links.best(len(target), kept)
                frequency += saved["frequency"]
            progress.advance(stop - start)
    return links, frequency
