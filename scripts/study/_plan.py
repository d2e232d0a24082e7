"""What a run of the study is made of, and whether its results are there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from _runs import SIZE, UPDATES, Row

from owf_fairseq.errors import InputError
from owf_fairseq.sharing import arch_name

RECIPE = Path(__file__).resolve().parent / "_recipe.yaml"
KIND = "study_run"
RECORD = "run.json"
PARTS = 16
"""Of the updates, one is the warm-up; after each, the model is validated and saved."""

Settings = dict[str, str]


@dataclass(frozen=True)
class Plan:
    """What a run is made of.

    Attributes:
        recipe: settings that all runs have in common; the seed is none of them.
        model: arch and flags of this one.
        first: settings of the training of the first half, if another model is trained there.
    """

    recipe: Settings
    model: Settings
    first: Settings | None

    @property
    def updates(self) -> int:
        """Of the whole run."""
        return int(self.recipe["max-update"])

    @property
    def second(self) -> Settings:
        """Settings of the last training, or of the only one."""
        if self.first is None:
            return {**self.recipe, **self.model}
        # the learning rate rises again from zero, to half of its peak, where the first training left it
        rest = {
            "max-update": str(self.updates - int(self.first["max-update"])),
            "lr": f"{float(self.recipe['lr']) / 2:g}",
        }
        return {**self.recipe, **self.model, **rest}


def make_plan(row: Row, updates: int = UPDATES, size: str = SIZE, recipe: Path = RECIPE) -> Plan:
    """Works out the settings of a run.

    Args:
        row: which model.
        updates: in all.
        size: of the named architectures.
        recipe: a config.

    Raises:
        InputError: the recipe can't be read.
    """
    from owf_fairseq.training.config import read_config

    common = {flag: setting.value for flag, setting in read_config(recipe).items() if flag != "seed"}
    part = str(max(1, updates // PARTS))
    intervals = dict.fromkeys(("warmup-updates", "validate-interval-updates", "save-interval-updates"), part)
    common |= {"max-update": str(updates), **intervals}
    first = None
    if row.start is not None:
        halves = {"max-update": str(updates // 2), "total-num-update": str(updates)}
        first = {**common, "arch": arch_name(size, row.start), **halves}
    return Plan(common, {"arch": arch_name(size, row.configuration), **row.flags}, first)


def is_done(place: Path, plan: Plan) -> bool:
    """Whether the results of just this run are there.

    Raises:
        InputError: they are of other settings, or can't be read.
    """
    from owf_fairseq.files.json_object import read_object

    if not (place / RECORD).exists():
        return False
    record = read_object(place / RECORD)
    before, now = ({**kept.get("recipe", {}), **kept.get("model", {})} for kept in (record, vars(plan)))
    different = [flag for flag in {**before, **now} if before.get(flag) != now.get(flag)]
    if different:
        flag = different[0]
        raise InputError(
            f"{place} has results of a run with other settings ({flag} {before.get(flag)}, now {now.get(flag)}): give "
            "another `--results`, or remove the folder"
        )
    return True
