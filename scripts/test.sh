#!/usr/bin/env bash
# Sets up what the tests need in a virtual environment and runs all checks: ruff, mypy, shellcheck and pytest.
#
#   bash scripts/test.sh                                 # everything
#   bash scripts/test.sh tests/test_patterns.py -k cycle  # what is given goes to pytest
#
# Environment: PYTHON, the interpreter to install with; OWF_VENV, the virtual environment (default: .venv).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
ensure_venv dev
cd "$ROOT"
say "ruff"
"$VENV/bin/ruff" check .
"$VENV/bin/ruff" format --check .
say "mypy, import-linter"
"$VENV/bin/mypy"
[ ! -x "$VENV/bin/lint-imports" ] || "$VENV/bin/lint-imports" # Python 3.10 has none
say "shellcheck"
"$VENV/bin/shellcheck" -x -P scripts scripts/*.sh scripts/*/*.sh .ci/run
say "pytest"
[ $# -gt 0 ] || set -- --numprocesses 2 --dist loadfile # everything: two processes, a file's tests in one of them
"$VENV/bin/python" -m pytest "$@"
