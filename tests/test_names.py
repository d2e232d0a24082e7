"""A public name stands for one thing: a reader who searches for it finds one definition."""

import ast
from collections import defaultdict

from fairseq_for_tests import REPOSITORY

PACKAGE = REPOSITORY / "owf_fairseq"

SUBCOMMAND = {"HELP", "EXAMPLE", "PASSES_FLAGS", "add_arguments", "run"}
"""What every module of a subcommand has, see ``owf_fairseq/cli/__init__.py``."""

COMMAND = "COMMAND"
"""In a module that writes files: the command that they are made by."""


def public_names(source):
    """The classes, functions and constants at the top of a module."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def test_no_two_modules_have_one_name_for_different_things():
    modules = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name in public_names(path.read_text(encoding="utf-8")):
            if name != COMMAND and not (path.parent.name == "cli" and name in SUBCOMMAND):
                modules[name].add(str(path.relative_to(PACKAGE)))
    assert "InputError" in modules
    assert "BASELINE" in modules  # one of several that one line defines
    assert {name: sorted(where) for name, where in modules.items() if len(where) > 1} == {}
