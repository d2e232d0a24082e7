"""fairseq-train's flags, as its own parser knows them: which there are depends on the arch, the task and others."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from fairseq import options
from fairseq.registry import REGISTRIES

from owf_fairseq import models as _models  # noqa: F401  registers the archs
from owf_fairseq.errors import InputError, collect
from owf_fairseq.patterns import as_words
from owf_fairseq.training.config import Setting

Values = tuple[str, ...]
"""The words behind a flag: one as a rule, none behind a switch."""

DATA = "data"
"""The one argument that is no flag."""


@dataclass(frozen=True)
class Given:
    """One flag that the user gave.

    Attributes:
        option: as it is typed: ``--max-update``; empty for words that belong to no flag.
        values: what follows it.
        where: the file and line, or empty for the command line.
    """

    option: str
    values: Values
    where: str = ""

    def problem(self, text: str) -> str:
        """A sentence on it that says where it is."""
        return f"{self.where}: `{self.option.lstrip('-')}`: {text}" if self.where else f"`{self.option}`: {text}"


def split_words(words: Sequence[str]) -> list[Given]:
    """The words of a command line, flag by flag."""
    found: list[Given] = []
    for word in words:
        if re.match(r"--?[^\d\W]", word):
            option, *value = word.split("=", 1) if word.startswith("--") else [word]
            found.append(Given(option, tuple(value)))
        elif found:
            found[-1] = Given(found[-1].option, (*found[-1].values, word))
        else:
            found.append(Given("", (word,)))
    return found


class FairseqFlags:
    """The flags that there are with what was given.

    Args:
        settings: of a config.
        words: of the command line, which win.

    Attributes:
        given: by fairseq's long name without dashes, the data left out: config's in its order, then the command line's.
        typed: the names of those that the command line has.

    Raises:
        InputError: with every problem of every flag.
    """

    def __init__(self, settings: Mapping[str, Setting], words: Sequence[str]) -> None:
        typed = split_words(words)
        config = [Given(f"--{key}", (one.value,), one.where) for key, one in settings.items() if key != DATA]
        self._options = _options([*config, *typed])
        problems: list[str] = []
        self.given: dict[str, Values] = {}
        self.typed: set[str] = set()
        for one in (*config, *typed):
            values = collect(problems, partial(self._check, one))
            if values is None:
                continue
            name = self._long_name(one.option)
            self.given.pop(name, None)
            if not self._is_left_out(one):
                self.given[name] = values
            if not one.where:
                self.typed.add(name)
        if problems:
            raise InputError(problems)

    def _check(self, one: Given) -> Values:
        """What follows the flag on the command line.

        Raises:
            InputError: there is no such flag, or not with this value.
        """
        if not one.option:
            raise InputError(f"'{' '.join(one.values)}' belongs to no flag")
        action = self._options.get(one.option)
        if action is None:
            near = difflib.get_close_matches(one.option, self._options, n=2, cutoff=0.75)
            names = " or ".join(f"`{name if not one.where else name.lstrip('-')}`" for name in near)
            raise InputError(
                one.problem(
                    "fairseq-train has no such flag with this arch, task, criterion, optimizer and scheduler"
                    + (f"; did you mean {names}?" if near else "")
                )
            )
        values = one.values
        if one.where and action.nargs == 0:
            if values[0] not in ("true", "false"):
                raise InputError(one.problem(f"a switch must be true or false, but is '{values[0]}'"))
            values = ()
            if self._is_left_out(one):  # an arch may refuse the flag, and a config say so
                return values
        parser = _Parser(one)
        parser.add_argument(DATA)
        parser._add_action(action)
        _, others = parser.parse_known_args(["", *as_words(one.option, *values)])
        if others:
            wanted = "a switch, which takes no value" if action.nargs == 0 else "must have one value"
            raise InputError(one.problem(f"{wanted}, but has {' '.join(values)}"))
        return values

    def _is_left_out(self, one: Given) -> bool:
        """Whether it is a switch of a config that has the value which fairseq takes without the flag.

        The flag sets it to false where fairseq's default is true: ``--left-pad-source`` of the task translation.
        """
        action = self._options[one.option]
        return bool(one.where) and action.nargs == 0 and (one.values[0] == "true") != bool(action.const)

    def _long_name(self, option: str) -> str:
        """fairseq's name of a flag: that of ``-s`` is ``source-lang``."""
        names = self._options[option].option_strings
        return next(name for name in names if name.startswith("--")).lstrip("-")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """All that fairseq-train reads from its command line, the arch's defaults included.

    Raises:
        InputError: it would refuse them.
    """
    parser = options.get_training_parser()
    with _refusals(parser, Given("fairseq-train", ())):
        namespace: argparse.Namespace = options.parse_args_and_arch(parser, list(words))
    return namespace


def _options(given: Sequence[Given]) -> dict[str, argparse.Action]:
    """All flags that there are with the given arch, task, criterion, ..., by each of their names.

    Raises:
        InputError: there is no such arch, task, criterion, ...
    """
    choices = {"--arch": "--arch", "-a": "--arch", "--task": "--task"}
    choices |= {option: option for name in REGISTRIES for option in [f"--{name.replace('_', '-')}"]}
    chosen = {choices[one.option]: one for one in given if one.option in choices}
    if "--arch" not in chosen:
        raise InputError("no `arch` is given: the config or its base must name one (`owf params --list` prints ours)")
    problems: list[str] = []
    parser = options.get_training_parser()
    known = {option: action for action in parser._actions for option in action.option_strings}
    for option, one in chosen.items():
        single = _Parser(one)
        single._add_action(known[option])
        collect(problems, partial(single.parse_args, [one.option, *one.values]))
    if problems:
        raise InputError(problems)
    words = [word for option, one in chosen.items() for word in (option, *one.values)]
    with _refusals(parser, Given("fairseq-train", ())):
        options.parse_args_and_arch(parser, ["", *words], parse_known=True)
    return {option: action for action in parser._actions if action.dest != "help" for option in action.option_strings}


class _Parser(argparse.ArgumentParser):
    """Refuses one flag, with a sentence that says where it was given."""

    def __init__(self, given: Given) -> None:
        super().__init__(allow_abbrev=False, add_help=False)
        self.given = given

    def error(self, message: str) -> NoReturn:
        raise InputError(self.given.problem(_readable(message, self._actions)))

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        try:
            return super()._get_value(action, arg_string)
        except SyntaxError as error:  # fairseq reads its lists as Python, and argparse expects no such error
            raise argparse.ArgumentError(action, f"invalid value: {arg_string!r}") from error


def _readable(message: str, actions: Sequence[argparse.Action]) -> str:
    """argparse's message without the name of the flag, and of 300 choices those that are near."""
    message = re.sub(r"^argument \S+: ", "", message).replace("invalid <lambda> value", "invalid value")
    choice = re.match(r"invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL)
    if choice is None:
        return message
    known = [str(name) for action in actions for name in action.choices or ()]
    near = difflib.get_close_matches(choice[1], known, n=4)
    among = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(known)}"
    return f"there is no '{choice[1]}'; {among}"


@contextlib.contextmanager
def _refusals(parser: argparse.ArgumentParser, given: Given) -> Iterator[None]:
    """Makes an ``InputError`` of every way in which fairseq's parser, and our archs below it, end the program."""

    def refuse(message: str) -> NoReturn:
        raise InputError(given.problem(message))

    vars(parser)["error"] = refuse
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    except InputError:
        raise
    except SystemExit as end:
        if isinstance(end.__cause__, InputError):
            raise end.__cause__ from end
        raise
    except (ValueError, SyntaxError) as error:
        raise InputError(given.problem(str(error))) from error
