#!/usr/bin/env bash
# Runs the test suite on the other supported stacks, each in a virtual environment of its own: the official fairseq
# 0.12.2, which needs Python 3.10, and fairseq-fixed on Python 3.11 or 3.12, which compiles for some minutes.
#
#   bash scripts/test_matrix.sh                    # both, as far as their Pythons are installed
#   bash scripts/test_matrix.sh official -k params # one; what follows goes to pytest
#
# Prints a line for each stack at the end. Environment: PYTHON310, PYTHON311, the interpreters (default: found on PATH).

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

stacks=(official fixed)
case ${1:-} in
  official | fixed) stacks=("$1") && shift ;;
esac

# run_stack NAME INTERPRETER PYTEST-ARGUMENTS...
run_stack() {
  local name=$1 python=$2
  shift 2
  VENV=$ROOT/.venv-$name
  PYTHON=$python ensure_venv dev
  if [ "$name" = fixed ] && "$VENV/bin/python" -m pip show -q ve-fairseq 2>/dev/null; then
    # the requirement of this platform is another build of the same files: each would overwrite the other's
    "$VENV/bin/python" -m pip uninstall -q -y ve-fairseq fairseq-fixed
    "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input -c "$ROOT/$(constraints)" fairseq-fixed==0.12.3.1
  fi
  (cd "$ROOT" && "$VENV/bin/owf" doctor && "$VENV/bin/python" -m pytest "$@")
}

results=() failed=0
for stack in "${stacks[@]}"; do
  python=${PYTHON310:-python3.10}
  [ "$stack" = official ] || python=${PYTHON311:-python3.11}
  if [ -z "$(python_minor "$python")" ]; then
    results+=("$stack: not run, $python does not run") failed=1
    continue
  fi
  say "$stack, with $python"
  # not `if run_stack`: within an `if` a failing command would not end the function
  set +e
  (set -e; run_stack "$stack" "$python" "$@")
  status=$?
  set -e
  if [ "$status" -eq 0 ]; then results+=("$stack: passed"); else results+=("$stack: failed") failed=1; fi
done
say "results"
printf '%s\n' "${results[@]}"
exit "$failed"
