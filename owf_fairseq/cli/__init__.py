"""The command ``owf``: one module a subcommand, with argument parsing and printing only.

A subcommand's module has ``HELP`` (one line), ``EXAMPLE`` (shown under its ``--help``), ``add_arguments(parser)`` and
``run(args) -> int``. It imports fairseq and torch inside ``run``: ``owf --help`` must answer within a second.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from owf_fairseq import __version__
from owf_fairseq.errors import InputError


def subcommands() -> list[str]:
    """Every module beside this one is a subcommand."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``owf`` with all subcommands."""
    parser = argparse.ArgumentParser(
        prog="owf",
        description="Transformers with shared, dropped and widened feed-forward networks, for fairseq.",
        epilog="example: owf params owf_big owf_big_one_wide_ffn",
    )
    parser.add_argument("--version", action="version", version=f"owf_fairseq {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in subcommands():
        module = importlib.import_module(f"{__name__}.{name}")
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=f"example:\n{module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Returns:
        The exit status: 0; 2 for bad usage or bad input; 1 for any other failure that the subcommand reports.
    """
    args = make_parser().parse_args(argv)
    try:
        return args.run(args)
    except InputError as error:
        for problem in error.problems:
            print(f"owf {args.command}: error: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has closed it: `owf params | head`
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print(f"owf {args.command}: interrupted", file=sys.stderr)
        return 130
