"""`owf doctor`: what is installed, and what is wrong with it."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence

from owf_fairseq.doctor import doctor
from owf_fairseq.doctor.installation import OPTIONAL_PARTS, REQUIRED_PARTS, Facts, installation_facts

HELP = "print which fairseq, torch, GPUs and optional parts are installed, and what is wrong with them"
EXAMPLE = "owf doctor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the subcommand."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the installation and its problems.

    Returns:
        0 if all is well, 1 if there is a problem.
    """
    facts = installation_facts()
    problems = doctor.problems(facts)
    if args.json:
        print(json.dumps({**dataclasses.asdict(facts), "problems": problems}, indent=2), flush=True)
    else:
        print("\n".join([*describe_facts(facts), "", *_verdict(problems)]), flush=True)
    return 1 if problems else 0


def describe_facts(facts: Facts) -> list[str]:
    """The installation, one part a line."""
    lines = [
        ("owf_fairseq", f"{facts.plugin_version}, {facts.registered_archs} archs", "".join(facts.plugin_locations[:1])),
        ("Python", ".".join(map(str, facts.python)), f"{facts.platform} {facts.machine}"),
        ("fairseq", facts.fairseq_source, facts.fairseq_location or ""),
        ("torch", facts.torch_version or "not installed", ""),
        ("CUDA", *_cuda(facts)),
    ]
    lines += [(name, facts.versions.get(name) or "not installed", "") for name in REQUIRED_PARTS]
    for name, extra in OPTIONAL_PARTS.items():
        version = facts.versions.get(name)
        lines.append((name, version or "not installed", "" if version else f"optional: extra `{extra}`"))
    return [f"{name:<14} {value}" + (f"  ({detail})" if detail else "") for name, value, detail in lines]


def _cuda(facts: Facts) -> tuple[str, str]:
    if facts.gpus:
        gpus = ", ".join(f"{gpu.name} {gpu.architecture}" for gpu in facts.gpus)
        built_for = " ".join(facts.torch_architectures)
        return facts.torch_cuda or "another backend", f"{gpus}; torch is built for {built_for}"
    if facts.torch_version is None:
        return "unknown", "torch is not installed"
    return (facts.torch_cuda, "torch sees no GPU") if facts.torch_cuda else ("none", "torch is a build for CPUs")


def _verdict(problems: Sequence[str]) -> list[str]:
    if not problems:
        return ["No problems found."]
    return [f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:", *(f"- {problem}" for problem in problems)]
