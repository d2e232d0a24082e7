"""What a user asks for of a table of the paper, and what can't be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from owf_fairseq.analysis.settings import CAPTURES
from owf_fairseq.paper.report import tables_of_the_paper
from owf_fairseq.paper.rows import BATCH_SIZES_TABLE, SIMILARITY_TABLE
from owf_fairseq.recipes.datasets import directions_of, is_multilingual
from owf_fairseq.sharing import ARCHS
from owf_fairseq.training.run import Training, plan

SAMPLE = 100
"""Sentences that the speed is measured on where no GPU is used and nothing else is asked for."""

ALL = "all"


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
        speed: sentences of the test set that the speed is measured on, a number or ``all``; None for all of them on a
            GPU, as in the paper, and for a sample on a CPU.
        direction: that the speed is measured in, where a model has many.
        seeds: of the similarity tables' first row: the baseline's, then the benchmark's.
        capture: as ``owf similarity`` takes it.
        overwrite: do again what was done with other settings, and all that is done without a training.
        metrics: that translations are scored with; the paper's if there are none.
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
    direction: str | None = None
    seeds: tuple[int, ...] = (2, 3)
    capture: str = CAPTURES[0]
    overwrite: bool = False
    metrics: tuple[str, ...] = ()

    def speed_sentences(self, on_gpu: bool) -> int | None:
        """How many sentences the speed is measured on; None for all.

        Args:
            on_gpu: whether a GPU is used.
        """
        if self.speed is None:
            return None if on_gpu else SAMPLE
        return int(self.speed) if self.speed.isdecimal() else None

    @property
    def speed_direction(self) -> str:
        """In which the speed is measured, of many."""
        return self.direction or "de-en"

    def problems(self, table: str, configs: Sequence[str], first: Training) -> list[str]:
        """What forbids it, a sentence each.

        Args:
            table: of the paper.
            configs: of the rows.
            first: the first row's training.
        """
        numbers = {"--jobs": self.jobs, "--sentences": self.sentences}
        problems = [
            f"`{flag}` must be at least 1, but is {n}" for flag, n in numbers.items() if n is not None and n < 1
        ]
        tables = [*tables_of_the_paper(), SIMILARITY_TABLE]
        if table not in tables:
            problems.append(f"`--table` must be one of {', '.join(tables)}, but is '{table}'")
        if self.speed not in (None, ALL) and (not self.speed.isdecimal() or int(self.speed) < 1):
            problems.append(f"`--speed` must be a whole number above 0, or {ALL}, but is {self.speed}")
        if not is_multilingual(first):
            if self.direction is not None:
                problems.append(f"`--direction` is for many directions, and {self.dataset} has one")
        elif self.speed_direction not in directions_of(first):
            known = " ".join(first.args.langs)
            problems.append(f"`--direction` must be A-B, two of the languages {known}, but is {self.speed_direction}")
        if table == SIMILARITY_TABLE:
            problems += self._similarity_problems(first)
        if table == BATCH_SIZES_TABLE:
            problems += self._batch_size_problems(configs)
        return problems

    def _similarity_problems(self, first: Training) -> list[str]:
        problems, own = [], first.args.seed
        if self.capture not in CAPTURES:
            problems.append(f"`--capture` must be {' or '.join(CAPTURES)}, but is {self.capture}")
        if len({own, *self.seeds}) < 1 + len(self.seeds) or len(self.seeds) < 2:
            problems.append(
                "`--seeds` must be two or more that differ from each other and from that of the configs, "
                f"{own}, but is {' '.join(map(str, self.seeds))}"
            )
        return problems

    def _batch_size_problems(self, configs: Sequence[str]) -> list[str]:
        problems = []
        if self.sentences is not None:
            problems.append(
                f"`--sentences` is of what is translated and scored, and table {BATCH_SIZES_TABLE} has no scores: "
                "`--speed N` is how many the speed is measured on"
            )
        archs = [plan(config, self.training, fp32=self.fp32).args.arch for config in configs]
        kinds = [ARCHS.get(arch, (arch, "")) for arch in archs]
        if [kind for _, kind in kinds] != ["individual", "one_wide_ffn"] or len({size for size, _ in kinds}) > 1:
            problems.append(
                f"table {BATCH_SIZES_TABLE} has two rows, an individual model and One Wide FFN of the same size, but "
                f"`--rows` are of {', '.join(archs)}"
            )
        return problems
