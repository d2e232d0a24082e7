"""A table of the paper on a dataset: what is to be run, as command lines of ``owf``.

The way of the data, in the folder of a run:
    raw/{train,valid,test}.LANG   text, which ``scripts/DATASET/download.sh`` writes
    data                          fairseq's binary data, or its shards, of ``preprocess.sh``
    NAME/checkpoint_best.pt       a row's model; NAME: of its config
    NAME/test.LANG                its translation of the test set
    scores.json, speed.json, table.md, or similarity-CAPTURE/
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.analysis.settings import CAPTURES
from owf_fairseq.data.corpora import read_notes
from owf_fairseq.errors import InputError
from owf_fairseq.paper.rows import SIMILARITY_TABLE
from owf_fairseq.recipes.datasets import (
    default_table,
    direction_flags,
    is_multilingual,
    metrics,
    paper_pair,
    tokenizer,
)
from owf_fairseq.training.config import table_configs
from owf_fairseq.training.run import Training, plan
from owf_fairseq.training.several import data_folders, run_name

CHECKPOINT = "checkpoint_best.pt"

Command = list[str]


@dataclass(frozen=True)
class Recipe:
    """What the user asks for.

    Attributes:
        dataset: a folder of configs.
        table: of the paper; None for the one that most of the dataset's rows are in.
        run: the folder of the run; None for that of the config's data.
        rows: configs in place of the table's.
        training: flags of fairseq-train, for every row.
        fp32: leave out what asks for half precision.
        cpu: use no GPU.
        jobs: models that are trained at a time.
        sentences: of the test set, from its start; None for all.
        speed: sentences that the speed is measured on; with many directions, a direction.
        seeds: of the similarity tables' first row: the baseline's, then the benchmark's.
        capture: as ``owf similarity`` takes it.
        overwrite: do again what was done with other settings, and all that is done without a training.
    """

    dataset: str
    table: str | None = None
    run: str | None = None
    rows: tuple[str, ...] = ()
    training: tuple[str, ...] = ()
    fp32: bool = False
    cpu: bool = False
    jobs: int | None = None
    sentences: int | None = None
    speed: str | None = None
    seeds: tuple[int, ...] = (2, 3)
    capture: str = CAPTURES[0]
    overwrite: bool = False


@dataclass(frozen=True)
class Walk:
    """A recipe that can be walked.

    Attributes:
        recipe: what was asked for.
        table: of the paper.
        configs: one for each row.
        training: flags of ``owf train`` for every row.
        first: the first row's training.
        run: the folder of the run.
    """

    recipe: Recipe
    table: str
    configs: list[str]
    training: list[str]
    first: Training
    run: Path

    @classmethod
    def of(cls, recipe: Recipe) -> Walk:
        """Checks what was asked for, before anything is done.

        Raises:
            InputError: with every problem.
        """
        table = recipe.table or default_table(recipe.dataset)
        configs = list(recipe.rows) or table_configs(table, recipe.dataset)
        flags = [*recipe.training, *direction_flags(recipe.training), *(["--cpu"] if recipe.cpu else [])]
        first = plan(configs[0], flags, fp32=recipe.fp32)
        run = Path(recipe.run or Path(first.args.data.split(os.pathsep)[0]).parent)
        walk = cls(recipe, table, configs, [*(["--fp32"] if recipe.fp32 else []), *flags], first, run)
        problems = [*walk._problems(), *first.problems_here()]
        if problems:
            raise InputError(problems)
        return walk

    def _problems(self) -> list[str]:
        recipe, problems = self.recipe, []
        numbers = {"--jobs": recipe.jobs, "--sentences": recipe.sentences}
        problems += [
            f"`{flag}` must be at least 1, but is {n}" for flag, n in numbers.items() if n is not None and n < 1
        ]
        if self.similarity:
            if recipe.capture not in CAPTURES:
                problems.append(f"`--capture` must be {' or '.join(CAPTURES)}, but is {recipe.capture}")
            own = self.first.args.seed
            if len({own, *recipe.seeds}) < 1 + len(recipe.seeds) or len(recipe.seeds) < 2:
                problems.append(
                    "`--seeds` must be two or more that differ from each other and from that of the configs, "
                    f"{own}, but is {' '.join(map(str, recipe.seeds))}"
                )
        elif is_multilingual(self.first):
            if self.speed not in self.directions:
                known = " ".join(self.first.args.langs)
                problems.append(f"`--speed` must be A-B, two of the languages {known}, but is {self.speed}")
        elif not self.speed.isdecimal() or int(self.speed) < 1:
            problems.append(f"`--speed` must be a whole number above 0, but is {self.speed}")
        return problems

    @property
    def similarity(self) -> bool:
        """Whether models are compared inside, and not by what they translate."""
        return self.table == SIMILARITY_TABLE

    @property
    def names(self) -> list[str]:
        """Of the rows' folders."""
        return [run_name(config) for config in self.configs]

    @property
    def speed(self) -> str:
        """What the speed is measured on."""
        return self.recipe.speed or ("de-en" if is_multilingual(self.first) else "100")

    @property
    def directions(self) -> list[str]:
        """Of a model with many."""
        pairs = self.first.args.lang_pairs
        return list(pairs.split(",") if isinstance(pairs, str) else pairs)

    @property
    def test(self) -> Path:
        """The folder of the test set: files test.LANG."""
        if self.recipe.sentences is not None:
            return self.run / f"first-{self.recipe.sentences}"
        return self._whole

    @property
    def _whole(self) -> Path:
        return self.run / ("test" if is_multilingual(self.first) else "raw")

    @property
    def result(self) -> Path:
        """What is made in the end."""
        return self.run / (f"similarity-{self.recipe.capture}" if self.similarity else "table.md")

    def commands(self) -> list[Command]:
        """What is to be run, in this order; each goes on, or does nothing, where it was done before."""
        kind = self._similarity if self.similarity else self._many if is_multilingual(self.first) else self._one
        return [*self._train(self.configs), *kind()]

    def _train(self, configs: Sequence[str], seeds: Sequence[int] = ()) -> list[Command]:
        more = ["--seeds", *map(str, seeds)] if seeds else []
        jobs = ["--jobs", str(self.recipe.jobs)] if self.recipe.jobs else []
        return [["train", *configs, "--run", str(self.run), *more, *jobs, *self.training]]

    def _checkpoint(self, name: str) -> str:
        return f"{name}={self.run / name / CHECKPOINT}"

    @property
    def _cpu(self) -> list[str]:
        return ["--cpu"] if self.recipe.cpu else []

    @property
    def _overwrite(self) -> list[str]:
        return ["--overwrite"] if self.recipe.overwrite else []

    @property
    def _data(self) -> list[str]:
        """The dictionaries: they are in each shard."""
        return ["--data", data_folders(self.run).split(os.pathsep)[0]]

    def _similarity(self) -> list[Command]:
        """The baseline and the benchmark are the first row's model with other seeds, so that no two began alike."""
        source, target = self.first.args.source_lang, self.first.args.target_lang
        baseline, *others = (run_name(self.configs[0], seed) for seed in self.recipe.seeds)
        models = [baseline, *self.names[1:], "--benchmark", self.names[0], *others]
        sentences = ["--sentences", str(self.recipe.sentences)] if self.recipe.sentences else []
        raw = self.run / "raw"
        return [
            *self._train(self.configs[:1], self.recipe.seeds),
            [
                *("similarity", *(name if name[0] == "-" else self._checkpoint(name) for name in models), *self._data),
                *("--src", str(raw / f"test.{source}"), "--ref", str(raw / f"test.{target}"), *sentences, *self._cpu),
                *("--capture", self.recipe.capture, "--output", str(self.result)),
            ],
        ]

    def _one(self) -> list[Command]:
        """One direction."""
        source, target = self.first.args.source_lang, self.first.args.target_lang
        src, ref = (str(self.test / f"test.{lang}") for lang in (source, target))
        translations = {name: str(self.run / name / f"test.{target}") for name in self.names}
        return [
            *self._first_lines([(source, target)]),
            *(
                [
                    *("translate", str(self.run / name / CHECKPOINT), *self._data, "--input", src),
                    *("--output", made, *self._cpu, *self._overwrite),
                ]
                for name, made in translations.items()
            ),
            [
                *("evaluate", *(f"{name}={made}" for name, made in translations.items()), "--ref", ref, "--src", src),
                *("--target-lang", target, *tokenizer(self.recipe.dataset, target), *self._scoring()),
            ],
            [
                *("benchmark", *map(self._checkpoint, self.names), *self._data),
                *(
                    "--input",
                    str(self._whole / f"test.{source}"),
                    "--sentences",
                    self.speed,
                    *self._cpu,
                    "--json",
                    str(self.run / "speed.json"),
                    *self._overwrite,
                ),
            ],
            self._report(),
        ]

    def _many(self) -> list[Command]:
        """Many directions."""
        folder = str(self.test)
        first, *others = self.first.args.langs
        return [
            *self._first_lines([(first, other) for other in others]),
            *(
                [
                    *("multilingual", "translate", str(self.run / name / CHECKPOINT), *self._data, "--input", folder),
                    *("--output", str(self.run / name / "test"), *self._cpu),
                ]
                for name in self.names
            ),
            [
                *("evaluate", "--directions", *(f"{name}={self.run / name / 'test'}" for name in self.names)),
                *("--ref", folder, "--src", folder, *self._scoring()),
            ],
            [
                *("multilingual", "benchmark", *map(self._checkpoint, self.names), *self._data),
                *("--direction", self.speed, "--input", str(self.test / f"test.{self.speed.split('-')[0]}")),
                *(*self._cpu, "--json", str(self.run / "speed.json"), *self._overwrite),
            ],
            self._report(),
        ]

    def _first_lines(self, pairs: Sequence[tuple[str, str]]) -> list[Command]:
        """The first sentences of the test set, in a folder of their own."""
        if self.recipe.sentences is None:
            return []
        return [
            [
                *("pairs", "--input", *(str(self._whole / f"test.{lang}") for lang in pair)),
                *("--output", *(str(self.test / f"test.{lang}") for lang in pair)),
                *("--limit", str(self.recipe.sentences), *self._overwrite),
            ]
            for pair in pairs
        ]

    def _scoring(self) -> list[str]:
        return [
            *("--baseline", self.names[0], "--metrics", *metrics(self.recipe.dataset), *self._cpu),
            *("--json", str(self.run / "scores.json"), *self._overwrite),
        ]

    def _report(self) -> Command:
        return [
            *("report", str(self.run / "scores.json"), str(self.run / "speed.json"), "--table", self.table),
            *("--pair", paper_pair(self.recipe.dataset), "--only-ours", "--note", self._budget()),
            *(word for note in read_notes(self.run / "raw") for word in ("--note", note)),
            *("--output", str(self.run / "table.md"), "--overwrite"),  # of the newest results
        ]

    def _budget(self) -> str:
        """What ours were made with, as a sentence under the table."""
        made = [*_training_pairs(self.run / "raw"), *_vocabulary(Path(self._data[1]))]
        updates = self.first.args.max_update
        made.append(f"{updates or 'no limit of'} updates of the training recipe of configs/{self.recipe.dataset}")
        sentences = ["--sentences", str(self.recipe.sentences)] if self.recipe.sentences else []
        given = [*sentences, *self.training]
        return f"ours: {', '.join(made)}{', with ' if given else ''}{' '.join(given)}"


def _training_pairs(raw: Path) -> list[str]:
    """How many there are, if the text is there."""
    files = sorted(raw.glob("train.*"))
    return [f"{sum(map(_count_lines, files)) // 2} training pairs"] if files else []


def _count_lines(file: Path) -> int:
    with open(file, "rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def _vocabulary(data: Path) -> list[str]:
    """The rows of the embeddings: fairseq adds four symbols to a dictionary."""
    dictionaries = sorted(data.glob("dict.*.txt"))
    return [f"{4 + _count_lines(dictionaries[0])} symbols"] if dictionaries else []
