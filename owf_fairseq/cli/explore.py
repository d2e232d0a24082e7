"""`owf explore`: the layouts that a budget of parameters allows, and how fast each should be."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import re
import textwrap
from typing import TYPE_CHECKING

from owf_fairseq.cli._values import names_by_commas, numbers_by_commas, pair_of_lengths
from owf_fairseq.cost_model.device_profiles import PROFILES
from owf_fairseq.errors import InputError, collect, too_small
from owf_fairseq.explore.families import DEFAULT, FAMILIES, family_help
from owf_fairseq.paper import rows as paper
from owf_fairseq.screen import shown_after
from owf_fairseq.sharing import SIZES

if TYPE_CHECKING:
    from owf_fairseq.explore.front import Question
    from owf_fairseq.explore.tables import Exploration

HELP = "find the layouts that a budget of parameters allows, and predict how fast each is"
EXAMPLE = (
    "owf explore big --params 228M\n"
    "owf explore big --params 228M --device cpu --batch-sizes 1,32 --plot layouts.png --write-configs layouts\n"
    "owf explore base --family taper,attention --params 60M --tolerance 20"
)

ABOUT = (
    "A layout says which layers have which FFN and attention, as the flags of `owf params` and fairseq-train do. "
    "Widths are solved for, so that every layout has the budget's parameters. The table shows the fastest, what the "
    "paper measured, and the Pareto front of speed against parameters: layouts than which none has as many parameters "
    "and is faster. Parameters count as a gain there, since a model learns with them; with fewer and fewer FFNs, any "
    "model gets faster. With a small --tolerance all layouts have nearly one size: look at the fastest. With a large "
    "one, widths are solved for at every 10 % of the budget, and the front says how much speed more parameters cost. "
    "Nothing here says which layout translates best."
)

CALIBRATED = "calibrated"
KIND = "exploration"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.usage = "owf explore SIZE [options]"
    families = "\n".join(
        textwrap.fill(f"{name:10} {family_help(name)}", 118, initial_indent="  ", subsequent_indent=" " * 13)
        for name in FAMILIES
    )
    parser.description = f"{HELP}.\n{textwrap.fill(ABOUT, 118)}\n\nfamilies of layouts:\n{families}"
    parser.add_argument("size", metavar="SIZE", help=f"one of {', '.join(SIZES)}")
    what = parser.add_argument_group("which layouts")
    what.add_argument(
        "--params", metavar="N", help="the budget: 228M, 0.228G or 228000000 (default: as the individual model has)"
    )
    what.add_argument(
        "--tolerance", metavar="X", default="1", help="how far from the budget, in %% of it (default: %(default)s)"
    )
    what.add_argument(
        "--family",
        type=names_by_commas,
        metavar="NAME,...",
        default=DEFAULT,
        help=f"of the families above (default: {','.join(DEFAULT)})",
    )
    what.add_argument(
        "--multiple-of", type=int, metavar="N", default=64, help="round widths to multiples of N (default: %(default)s)"
    )
    what.add_argument(
        "--vocab-size",
        type=int,
        metavar="N",
        default=paper.VOCAB_SIZES["en-de"],
        help="symbols of fairseq's dictionary, the 4 special ones included (default: %(default)s, as in the paper's "
        "English-German tables)",
    )
    speed = parser.add_argument_group("how fast")
    speed.add_argument(
        "--device",
        metavar="NAME",
        default="v100",
        help=f"{', '.join(PROFILES)}: as `owf benchmark --predict --profile` has them (v100, the default, is fitted to "
        f"the paper's speeds); or {CALIBRATED}: this machine, measured now",
    )
    speed.add_argument(
        "--batch-sizes", type=numbers_by_commas, metavar="N,N,...", default=(1,), help="a table for each (default: 1)"
    )
    speed.add_argument(
        "--lengths",
        nargs="+",
        type=pair_of_lengths,
        metavar="S/T",
        default=((26, 30),),
        help="pieces of source and target (default: 26/30)",
    )
    speed.add_argument("--beam", type=int, metavar="N", default=5, help="beam size (default: %(default)s)")
    speed.add_argument("--fp16", action="store_true", help="half precision")
    speed.add_argument("--cpu", action="store_true", help=f"with --device {CALIBRATED}: use no GPU")
    speed.add_argument(
        "--threads", type=int, metavar="N", default=1, help=f"with --device {CALIBRATED} (default: %(default)s)"
    )
    form = parser.add_argument_group("output")
    form.add_argument("--top", type=int, metavar="N", default=10, help="show the N fastest (default: %(default)s)")
    form.add_argument("--all", action="store_true", help="show all layouts that match")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    form.add_argument("--json", metavar="FILE", help="write what the tables have as JSON")
    form.add_argument("--plot", metavar="FILE", help="draw all layouts that match (.png, .pdf or .svg)")
    form.add_argument(
        "--write-configs",
        metavar="DIR",
        help="write for each line of the tables the config with which `owf train` trains it",
    )
    form.add_argument(
        "--config-base",
        metavar="CONFIG",
        help="that these are based on: FILE.yaml, or one of the package's (default: wmt22_en_de/_base, the paper's of "
        "another --vocab-size, or for the smallest sizes quickstart/_base)",
    )
    form.add_argument("--overwrite", action="store_true", help="replace --json and --plot whatever they are")


def run(args: argparse.Namespace) -> int:
    """Looks for the layouts, prints the tables and writes the files."""
    found = explored(args)
    reports = found.reports()
    with shown_after("\n\n".join(one.as_markdown() if args.markdown else one.as_text() for one in reports)):
        if args.json:
            from owf_fairseq.files.outputs import write_output

            write_output("--json", args.json, reports[0].as_json().split("\n"))
        if args.plot:
            from owf_fairseq.explore.plot import plot_layouts

            plot_layouts(found, args.plot)
        if args.write_configs:
            from owf_fairseq.explore.configs import write_configs

            write_configs(args.write_configs, config_base(args), found.lines())
    return 0


def explored(args: argparse.Namespace) -> Exploration:
    """What is found.

    Raises:
        InputError: with every problem of the command line.
    """
    from owf_fairseq.cost_model.cost import Workload
    from owf_fairseq.explore.tables import Timing, explore
    from owf_fairseq.speed.benchmark import calibrated
    from owf_fairseq.speed.options import BenchmarkOptions

    options = BenchmarkOptions(
        lengths=tuple(args.lengths),
        batch_sizes=args.batch_sizes,
        beam=args.beam,
        threads=args.threads,
        vocab_size=args.vocab_size,
        cpu=args.cpu,
        fp16=args.fp16,
        calibrate=args.device == CALIBRATED,
    )
    problems = [*options.problems(), *too_small("--multiple-of", args.multiple_of), *too_small("--top", args.top)]
    question = collect(problems, lambda: asked(args))
    problems += check_device(args) + check_outputs(args)
    if problems or question is None:
        raise InputError(problems)
    profile = PROFILES.get(args.device) or calibrated(options).profile
    workloads = tuple(
        Workload(size, options.beam, *lengths) for lengths in options.lengths for size in options.batch_sizes
    )
    return explore(question, Timing(profile, workloads, args.fp16, args.top, args.all))


def asked(args: argparse.Namespace) -> Question:
    """What is looked for.

    Raises:
        InputError: with every problem of these flags.
    """
    from owf_fairseq.explore.front import Question, individual_count

    problems: list[str] = []
    if args.size not in SIZES:
        problems.append(f"SIZE must be one of {', '.join(SIZES)}, but is '{args.size}'")
    problems += unknown_families(args.family)
    tolerance = re.fullmatch(r"([0-9]{1,3}(\.[0-9]+)?) ?%?", args.tolerance)
    share = float(tolerance[1]) / 100 if tolerance else math.nan
    if not 0 <= share < 1:
        problems.append(f"`--tolerance` must be a number of % from 0 to below 100, but is '{args.tolerance}'")
    budget = None if args.params is None else collect(problems, lambda: read_params(args.params))
    if problems:
        raise InputError(problems)
    budget = budget or individual_count(args.size, args.vocab_size)
    return Question(args.size, args.vocab_size, budget, share, tuple(args.family), args.multiple_of)


def read_params(text: str) -> int:
    """``228M``, ``0.228G``, ``227975168`` or ``227,975,168`` as a number.

    Raises:
        InputError: it is none, or no model has as many parameters.
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([kKmMgG]?)", text.replace(",", ""))
    number = round(float(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[match[2].upper()]) if match else 0
    if not 1 <= number <= LARGEST_BUDGET:
        raise InputError(
            f"`--params` must be a number of parameters up to {LARGEST_BUDGET:,}, such as 228M, 0.228G or 228000000, "
            f"but is '{text}'"
        )
    return number


LARGEST_BUDGET = 10**12


def unknown_families(names: tuple[str, ...]) -> list[str]:
    """A sentence for each name that is no family's."""
    return [f"`--family` must be of {', '.join(FAMILIES)}, but one is '{one}'" for one in names if one not in FAMILIES]


def check_device(args: argparse.Namespace) -> list[str]:
    """What is wrong with the device."""
    problems = []
    if args.device not in (*PROFILES, CALIBRATED):
        problems.append(f"`--device` must be one of {', '.join((*PROFILES, CALIBRATED))}, but is '{args.device}'")
    elif args.device == CALIBRATED:
        from owf_fairseq.decoding.fairseq_backend import choose_device

        collect(problems, lambda: choose_device(args.cpu, args.fp16))
    elif args.cpu or args.threads != 1:
        problems.append(
            f"`--cpu` and `--threads` are for `--device {CALIBRATED}`; the profile of a CPU is `--device cpu`"
        )
    return problems


def check_outputs(args: argparse.Namespace) -> list[str]:
    """What forbids to write the files."""
    from owf_fairseq.explore.configs import COMMAND, FLAG, base_file
    from owf_fairseq.files.folders import check_output
    from owf_fairseq.files.outputs import check_output_file

    problems = check_output_file("--json", args.json, args.overwrite, kind=KIND)
    problems += check_output_file("--plot", args.plot, args.overwrite)
    if args.plot is not None and os.path.splitext(args.plot)[1] not in (".png", ".pdf", ".svg"):
        problems.append(f"`--plot` must end in .png, .pdf or .svg, but is {args.plot}")
    if args.plot is not None and importlib.util.find_spec("matplotlib") is None:
        problems.append("`--plot` needs matplotlib: pip install '.[plot]'")
    if args.write_configs is not None:
        problems += check_output(args.write_configs, COMMAND, FLAG)
        if args.size in SIZES:
            collect(problems, lambda: base_file(config_base(args)))
    elif args.config_base is not None:
        problems.append("`--config-base` is for `--write-configs`, which is not given")
    return problems


def config_base(args: argparse.Namespace) -> str:
    """The config that those to be written are based on."""
    from owf_fairseq.explore.configs import default_base

    return args.config_base or default_base(args.size, args.vocab_size)
