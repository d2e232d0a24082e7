"""The command `owf` as a whole: quick help, every subcommand documented, errors told all at once."""

import argparse
import importlib
import json
import os
import shlex
import subprocess
import sys
import time

import pytest

from owf_fairseq import cli
from owf_fairseq.errors import InputError

COMMANDS = cli.subcommands()


def run_owf(code, *arguments):
    """Runs Python code in a process of its own, as the command `owf` is run."""
    setup = f"import sys; sys.path[:] = {sys.path!r}; sys.argv = ['owf', *sys.argv[1:]]; "
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", setup + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import atexit, json\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        "from owf_fairseq.cli import main; main()"
    )
    start = time.monotonic()
    done = run_owf(code, "--help")
    assert time.monotonic() - start < 3  # 0.1 s on an idle machine; importing torch alone takes longer than this
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)
    loaded = set(json.loads(done.stderr))
    assert "owf_fairseq.cli" in loaded
    assert not loaded & {"torch", "fairseq", "numpy", "sacrebleu", "sentencepiece"}


def test_there_are_subcommands():
    assert {"params", "doctor"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_subcommand_is_documented(name, capsys):
    module = importlib.import_module(f"owf_fairseq.cli.{name}")
    assert module.HELP
    assert "\n" not in module.HELP
    assert module.EXAMPLE.startswith("owf ")
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert module.EXAMPLE in printed
    assert " ".join(module.HELP.split()[:3]) in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_parses(name):
    module = importlib.import_module(f"owf_fairseq.cli.{name}")
    for example in module.EXAMPLE.replace("\\\n", " ").splitlines():
        args, others = cli.make_parser().parse_known_args(shlex.split(example.split(" <")[0])[1:])
        assert args.command == name
        assert args.passes_flags or not others


@pytest.fixture
def fake_run(monkeypatch):
    """Lets a test say what a subcommand does."""

    def set_run(function):
        parser = argparse.ArgumentParser()
        parser.set_defaults(command="fake", passes_flags=False, run=function)
        monkeypatch.setattr(cli, "make_parser", lambda: parser)

    return set_run


def test_bad_input_is_status_2_with_all_problems(fake_run, capsys):
    def run(args):
        raise InputError(["first problem", "second problem"])

    fake_run(run)
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["owf fake: error: first problem", "owf fake: error: second problem"]


def test_the_status_is_the_subcommands(fake_run):
    fake_run(lambda args: 1)
    assert cli.main([]) == 1


def test_unknown_flags_are_status_2(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["doctor", "--encoder-ffn", "shared"])
    assert end.value.code == 2
    assert "--encoder-ffn" in capsys.readouterr().err


def test_a_closed_pipe_is_no_traceback():
    code = "import os; r, w = os.pipe(); os.close(r); os.dup2(w, 1); from owf_fairseq.cli import main; sys.exit(main())"
    done = run_owf(code, "params", "owf_tiny")  # little output: it stays in the buffer unless it is flushed
    assert "BrokenPipe" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode not in (0, 2)


def test_a_closed_pipe_is_not_an_error_message():
    """`owf params --list | head -1`, with Python's usual buffering."""
    code = "import sys; sys.argv = ['owf', 'params', '--list']; from owf_fairseq.cli import main; sys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1


def test_a_missing_dependency_points_at_the_doctor(monkeypatch, capsys):
    from owf_fairseq.cli import params

    def run(args):
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(params, "run", run)
    assert cli.main(["params", "owf_tiny"]) == 1
    assert "No module named 'torch'; `owf doctor` says what is missing" in capsys.readouterr().err
