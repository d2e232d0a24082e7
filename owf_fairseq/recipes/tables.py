"""A table of the paper on a dataset: what is to be run, as command lines of ``owf``.

The way of the data, in the folder of a run:
    raw/{train,valid,test}.LANG   text, which ``scripts/DATASET/download.sh`` writes
    data                          fairseq's binary data, or its shards, of ``preprocess.sh``
    NAME/checkpoint_best.pt       a row's model; NAME: of its config
    NAME/test.LANG                its translation of the test set
    scores.json, speed.json, table.md; or batch_size.json, batch_size.md; or similarity-CAPTURE/
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from owf_fairseq.data.corpora import read_notes
from owf_fairseq.errors import InputError
from owf_fairseq.paper.rows import BATCH_SIZES_TABLE, SIMILARITY_TABLE, batch_rows
from owf_fairseq.recipes.budget import budget
from owf_fairseq.recipes.datasets import (
    default_table,
    direction_flags,
    is_multilingual,
    metrics,
    paper_pair,
    tokenizer,
)
from owf_fairseq.recipes.recipe import Recipe
from owf_fairseq.training.config import table_configs
from owf_fairseq.training.run import Training, plan
from owf_fairseq.training.several import data_folders, run_name

CHECKPOINT = "checkpoint_best.pt"

Command = list[str]


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
        problems = [*recipe.problems(table, configs, first), *first.problems_here()]
        if problems:
            raise InputError(problems)
        return cls(recipe, table, configs, [*(["--fp32"] if recipe.fp32 else []), *flags], first, run)

    @property
    def similarity(self) -> bool:
        """Whether models are compared inside, and not by what they translate."""
        return self.table == SIMILARITY_TABLE

    @property
    def batch_sizes(self) -> bool:
        """Whether models are compared by their speeds at several batch sizes alone."""
        return self.table == BATCH_SIZES_TABLE

    @property
    def names(self) -> list[str]:
        """Of the rows' folders."""
        return [run_name(config) for config in self.configs]

    @property
    def speed(self) -> int | None:
        """How many sentences the speed is measured on; None for all."""
        return self.recipe.speed_sentences(self.first.on_gpu)

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
        if self.similarity:
            return self.run / f"similarity-{self.recipe.capture}"
        return self.run / (f"{BATCH_SIZES_TABLE}.md" if self.batch_sizes else "table.md")

    def commands(self) -> list[Command]:
        """What is to be run, in this order; each goes on, or does nothing, where it was done before."""
        if self.similarity:
            rest = self._similarity()
        elif self.batch_sizes:
            rest = self._batch_sizes()
        else:
            rest = self._many() if is_multilingual(self.first) else self._one()
        return [*self._train(self.configs), *rest]

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
            [*self._benchmark("speed.json"), "--by-size"],
            self._report(),
        ]

    def _batch_sizes(self) -> list[Command]:
        """The paper's batch sizes, as far as the sentences fill them."""
        sizes = [row.batch_size for row in batch_rows() if self.speed is None or row.batch_size <= self.speed]
        made = f"{BATCH_SIZES_TABLE}.json"
        return [
            [*self._benchmark(made), "--batch-sizes", ",".join(map(str, sizes))],
            self._report(made),
        ]

    def _benchmark(self, made: str) -> Command:
        """All models in turn on the test set, or on a sample of it."""
        text = str(self._whole / f"test.{self.first.args.source_lang}")
        return [
            *("benchmark", *map(self._checkpoint, self.names), *self._data, "--input", text, *self._sample),
            *(*self._cpu, "--json", str(self.run / made), *self._overwrite),
        ]

    @property
    def _sample(self) -> list[str]:
        return [] if self.speed is None else ["--sentences", str(self.speed)]

    def _many(self) -> list[Command]:
        """Many directions."""
        folder, direction = str(self.test), self.recipe.speed_direction
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
                *("--direction", direction, "--input", str(self._whole / f"test.{direction.split('-')[0]}")),
                *(*self._sample, "--by-size", *self._cpu, "--json", str(self.run / "speed.json"), *self._overwrite),
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
            *("--by-size", "--metrics", *(self.recipe.metrics or metrics(self.recipe.dataset)), *self._cpu),
            *("--json", str(self.run / "scores.json"), *self._overwrite),
        ]

    def _report(self, *made: str) -> Command:
        results = [str(self.run / name) for name in made or ("scores.json", "speed.json")]
        return [
            *("report", *results, "--table", self.table),
            *("--pair", paper_pair(self.recipe.dataset), "--only-ours", "--note", self._made_with()),
            *(word for note in read_notes(self.run / "raw") for word in ("--note", note)),
            *("--output", str(self.result), "--overwrite"),  # of the newest results
        ]

    def _made_with(self) -> str:
        recipe = self.recipe
        sentences = ["--sentences", str(recipe.sentences)] if recipe.sentences else []
        folders = (self.run / "raw", Path(self._data[1]))
        return budget(*folders, recipe.dataset, self.first.args.max_update, [*sentences, *self.training])
