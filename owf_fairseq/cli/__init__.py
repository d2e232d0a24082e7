"""The command ``owf``: one module a subcommand, with argument parsing and printing only.

A subcommand's module has ``HELP`` (one line), ``EXAMPLE`` (shown under its ``--help``), ``add_arguments(parser)`` and
``run(args) -> int``. It imports fairseq and torch inside ``run``: ``owf --help`` must answer within a second. One that
takes fairseq's flags too says ``PASSES_FLAGS = True``: what its parser does not know is in ``args.fairseq_flags``.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from owf_fairseq import USER_DIR, __version__
from owf_fairseq.errors import InputError, printable
from owf_fairseq.screen import OutputError, explained, tolerant_streams


def subcommands() -> list[str]:
    """Every module beside this one is a subcommand, but for those that begin with ``_``, which several share."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``owf`` with all subcommands."""
    parser = argparse.ArgumentParser(
        prog="owf",
        description="Transformers with shared, dropped and widened feed-forward networks, for fairseq.",
        epilog="example: owf params owf_big owf_big_one_wide_ffn",
    )
    parser.add_argument("--version", action="version", version=f"owf_fairseq {__version__}")
    parser.add_argument(
        "--user-dir",
        action="version",
        version=USER_DIR,
        help="print the folder to give to fairseq's --user-dir, and exit",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in subcommands():
        module = importlib.import_module(f"{__name__}.{name}")
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=f"example:\n{module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # an abbreviation could be a flag of fairseq's
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, passes_flags=getattr(module, "PASSES_FLAGS", False))
    return parser


LARGEST_NUMBER = 2**31 - 1
"""Of the numbers on the command line: what is behind them, in C, holds no larger ones."""


def check_numbers(args: argparse.Namespace) -> None:
    """Refuses numbers that no flag of any subcommand has a use for, wherever they would have been stumbled over.

    Raises:
        InputError: with the flags and their numbers.
    """
    problems = []
    for name, value in vars(args).items():
        for number in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(number, (int, float)) and not abs(number) <= LARGEST_NUMBER:
                shown = str(number) if isinstance(number, float) or abs(number) < 10**20 else "a number of many digits"
                problems.append(
                    f"`--{name.replace('_', '-')}` must be a number from -{LARGEST_NUMBER:,} to {LARGEST_NUMBER:,}, "
                    f"but is {shown}"
                )
    if problems:
        raise InputError(problems)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Returns:
        The exit status: 0; 2 for bad usage or bad input; 130 after Ctrl-C; 1 for any other failure that the subcommand
        reports.
    """
    with tolerant_streams():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    args, others = parser.parse_known_args(argv)
    args.fairseq_flags = others
    if args.fairseq_flags and not args.passes_flags:
        parser.error(f"unrecognized arguments: {' '.join(args.fairseq_flags)}")
    try:
        check_numbers(args)
        status = args.run(args)
        sys.stdout.flush()  # here, where a closed pipe is expected, and not when Python ends
        return status
    except InputError as error:
        for problem in error.problems:
            print(f"owf {args.command}: error: {printable(problem)}", file=sys.stderr)
        return 2
    except OutputError as failure:
        if said := explained(failure):
            print(f"owf {args.command}: error: {said}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"owf {args.command}: {error}; `owf doctor` says what is missing and what to do", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"owf {args.command}: interrupted", file=sys.stderr)
        return 130
