"""What may import what; `lint-imports` keeps the rest of it, with the contracts in pyproject.toml."""

import subprocess
import sys

from owf_fairseq.cli import subcommands

LIGHT = "patterns sharing errors baselines model_names progress tables files cost_model explore scoring cli".split()
"""Modules and packages that import neither torch nor fairseq when they are loaded, nor does what they import."""

PROGRAM = """
import importlib, pkgutil, sys
import owf_fairseq

def modules(name):
    package = importlib.import_module(name)
    yield name
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), name + "."):
        yield module.name

for light in sys.argv[1:]:
    for name in modules("owf_fairseq." + light):
        importlib.import_module(name)
        print(name)
        heavy = {"torch", "fairseq"} & set(sys.modules)
        assert not heavy, f"{name} imports {heavy}"

from owf_fairseq.cli import make_parser
make_parser()
heavy = {"torch", "fairseq"} & set(sys.modules)
assert not heavy, f"the parser imports {heavy}"
"""


def test_what_answers_quickly_loads_neither_torch_nor_fairseq():
    program = f"import sys; sys.path[:] = {sys.path!r}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program, *LIGHT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert {"owf_fairseq.sharing", "owf_fairseq.scoring.evaluate", "owf_fairseq.cost_model.cost"} <= set(loaded)
    assert {f"owf_fairseq.cli.{name}" for name in subcommands()} <= set(loaded)
