"""Raw parallel text -> pieces -> fairseq's binary data, with one dictionary for both languages.

A corpus may have any number of pairs. Its files are read in chunks of 50,000 pairs (`chunks`), each by one of several
processes (`work`), in three steps: the text is checked and a sample of it drawn, it is cut into pieces, and the pieces
are written as binary data. Then the chunks are put together to shards (`shards`).

What is in memory at a time, for 296 million pairs: of the corpus, a few megabytes (where every thousandth line begins,
and a few numbers for each of the 6,000 chunks); in each process a line, and about 250 MB for fairseq and torch; while
the segmentation is learnt, 25 bytes a character of the sample (`train_segmentation.Learning`), 6 GB at most with its
default size; while a shard is put together, about 60 bytes for each of *its* pairs. fairseq-train then holds up to 80
bytes for each pair of a shard. `scripts/measure/prepare_memory.py` measures all of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from owf_fairseq import __version__
from owf_fairseq.data.corpus import Corpus, read_corpus, split_langs
from owf_fairseq.data.preparation import Preparation, Prepared
from owf_fairseq.data.recorded_segmentation import Recorded
from owf_fairseq.data.segmentation import KINDS
from owf_fairseq.data.shards import busy_workers, chunk_lines, deal, shard_name
from owf_fairseq.data.train_segmentation import Learning
from owf_fairseq.data.work import Workers, cores
from owf_fairseq.errors import InputError, collect
from owf_fairseq.files.folders import check_output, output_folder
from owf_fairseq.files.job import Job, stamps
from owf_fairseq.files.lines import PathLike, remove
from owf_fairseq.files.work_folder import WorkFolder

COMMAND = "owf prepare"
MAX_WORKERS = 32
"""Processes that are started unless more are asked for; each holds about 250 MB."""


def prepare(
    prefixes: dict[str, str],
    langs: str,
    output: PathLike,
    vocab_size: int | None = None,
    character_coverage: float | None = None,
    segmentation: str | None = None,
    *,
    sample: int | None = None,
    segmentation_text: Sequence[str] | None = None,
    separate_vocabularies: bool = False,
    normalization: str | None = None,
    lowercase: bool = False,
    like: PathLike | None = None,
    shards: int = 1,
    workers: int | None = None,
    overwrite: bool = False,
) -> Prepared:
    """Make the folder that `fairseq-train` reads from files `PREFIX.source` and `PREFIX.target`.

    The segmentation is made from the training data's two sides together; it, its record `segmentation.json` and the
    text as pieces (`encoded/`) go to the same folder. The folder appears only when it is complete. Until then, what is
    done is in `.NAME.partial` beside it: after an interruption, the same call goes on from there. After its end, the
    same call does nothing as long as no file has changed. Large corpora are worked on in processes that are started
    afresh (`spawn`): a program that calls this needs its `if __name__ == "__main__":`.

    Args:
        prefixes: `{"train": PREFIX, "valid": PREFIX, "test": PREFIX}`; the last may be missing.
        langs: source and target language with a hyphen between, as the files end.
        output: the folder to make.
        vocab_size, character_coverage, segmentation, sample, segmentation_text, separate_vocabularies, normalization,
            lowercase: see `Learning`, whose defaults are taken for None.
        like: a folder made before, whose segmentation and dictionary are taken instead.
        shards: parts of the training data, each in a folder of its own with all that fairseq needs; valid and test are
            in the first, where fairseq reads them.
        workers: processes; by default one for each core.
        overwrite: make the folder again, also if it was made with other settings.

    Raises:
        InputError: all that is wrong with the arguments and files, together.
        WorkerLost: one of the processes was killed.
    """
    given = {
        "segmentation": segmentation,
        "vocab_size": vocab_size,
        "character_coverage": character_coverage,
        "sample": sample,
        "segmentation_text": tuple(segmentation_text) if segmentation_text else None,
        "separate_vocabularies": separate_vocabularies or None,
        "normalization": normalization,
        "lowercase": lowercase or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    learning = Learning(**given)  # type: ignore[arg-type]
    problems = learning.problems()
    for flag, value in (("--shards", shards), ("--workers", workers)):
        if value is not None and value < 1:
            problems.append(f"`{flag}` must be at least 1, but is {value}")
    recorded = None
    if like is not None:
        flags = " and ".join(f"`--{name.replace('_', '-')}`" for name in given)
        if given:
            problems.append(f"`--like` takes over a segmentation as it is: leave out {flags}")
        recorded = collect(problems, lambda: Recorded.find(like, shard_name(0, 2)))
    try:
        pair = split_langs(langs, prefixes["train"])
    except InputError as error:
        raise InputError([*check_output(output, COMMAND), *problems, *error.problems]) from error
    problems += recorded.problems(*pair) if recorded else []
    job = Job(
        COMMAND,
        {f"--{name.replace('_', '-')}": value for name, value in {"langs": langs, "shards": shards, **given}.items()},
        {
            **{f"--{split}": [f"{prefix}.{lang}" for lang in pair] for split, prefix in prefixes.items()},
            "--segmentation-text": learning.segmentation_text,
            "--like": [] if like is None else [like],
        },
        folder=output,
        overwrite=overwrite,
    )
    job.reads(recorded.files() if recorded else [])
    final = Path(os.path.abspath(output))
    partial = final.parent / f".{final.name}.partial"
    if not problems and job.is_done():
        remove(partial)  # what is left of a run that was interrupted while it tidied up
        return Prepared(**job.result())
    problems = job.problems() + problems
    corpus = read_corpus(prefixes, pair, lambda split, lines: chunk_lines(split, lines, max(shards, 1)), problems)
    if 0 < corpus.lines("train") < shards:
        problems.append(f"`--shards` {shards}: there are only {corpus.lines('train')} training pairs")
    kind = recorded.kind if recorded else learning.kind
    if problems:
        raise InputError(problems + corpus.problems_now(kind if kind in KINDS else "sentencepiece"))

    settings = _settings(corpus, learning, recorded, shards)
    busy = busy_workers(sum(map(corpus.lines, corpus.sides)))
    count = min(workers or min(cores(), MAX_WORKERS), max(busy, 1))
    with WorkFolder(partial, settings) as work:
        dealt = deal(corpus.chunks, shards)
        with Workers(count) as processes:
            prepared = Preparation(corpus, learning, recorded, dealt, work, processes).run()
        with output_folder(final, COMMAND, {**job.record(final), "result": vars(prepared)}) as folder:
            for shard in dealt:
                # linked, not moved: what took hours is not lost if this fails
                shutil.copytree(shard.folder(work.path), folder / shard.name, copy_function=_link, dirs_exist_ok=True)
    return prepared


def _settings(corpus: Corpus, learning: Learning, recorded: Recorded | None, shards: int) -> dict[str, object]:
    """All that the result depends on."""
    files = [file.path for sides in corpus.sides.values() for file in sides]
    files += [*learning.segmentation_text, *map(str, recorded.files() if recorded else [])]
    return {
        **vars(learning),
        "like": None if recorded is None else str(recorded.folder.resolve()),
        "prefixes": {split: os.path.abspath(prefix) for split, prefix in corpus.prefixes.items()},
        "langs": corpus.langs,
        "shards": shards,
        "version": __version__,
        "input files": stamps(files),
    }


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # not every file system has links
        shutil.copyfile(source, target)
