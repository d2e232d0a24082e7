# Functions that the scripts of this folder share; to be read by them: . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
#
# Environment: PYTHON     the interpreter for the virtual environment (default: the first of Python 3.10 to 3.12 found)
#              OWF_VENV   the virtual environment (default: .venv in the checkout)
# shellcheck shell=bash

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${OWF_VENV:-$ROOT/.venv}

# say TEXT: a line that stands out from what the programs print.
say() { printf '\n== %s\n' "$*"; }

# fail TEXT: something went wrong that the user didn't cause.
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# usage_error TEXT: a flag or a file that can't be used.
usage_error() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

# print_header: the comment at the top of the calling script, as its --help.
print_header() { sed -n '2,/^[^#]/{/^#/!d; s/^# \{0,1\}//; p;}' "$0"; }

# minutes SECONDS: "3 min 05 s".
minutes() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

# python_minor INTERPRETER: its minor version if it is Python 3 and runs, else nothing.
python_minor() { "$1" -c 'import sys; print(sys.version_info[1] if sys.version_info[0] == 3 else "")' 2>/dev/null || true; }

# find_python: prints the interpreter to use. On 3.11 and 3.12 fairseq installs as a wheel, on 3.10 it is compiled.
find_python() {
  local candidate minor wanted
  if [ -n "${PYTHON:-}" ]; then
    minor=$(python_minor "$PYTHON")
    case $minor in
      10 | 11 | 12) printf '%s\n' "$PYTHON" && return ;;
    esac
    usage_error "PYTHON=$PYTHON must be Python 3.10, 3.11 or 3.12, but is ${minor:+3.}${minor:-no Python 3 that runs}"
  fi
  for wanted in '11 12' '10'; do
    for candidate in python3 python3.12 python3.11 python3.10 python; do
      minor=$(python_minor "$candidate")
      case " $wanted " in
        *" ${minor:-none} "*) printf '%s\n' "$candidate" && return ;;
      esac
    done
  done
  usage_error "no Python 3.10, 3.11 or 3.12 found: install one, or name it: PYTHON=/path/to/python3.11 bash $0"
}

# ensure_venv [EXTRAS]: makes the virtual environment and installs the checkout into it, with the tested versions.
# Does nothing when that was done before with the same pyproject.toml and constraints.txt.
ensure_venv() {
  local extras=${1:-} python start=$SECONDS minor mark state
  mark=$VENV/.installed${extras:+-$extras}
  state=$(cat "$ROOT/pyproject.toml" "$ROOT/constraints.txt" | cksum)
  if [ -e "$mark" ] && [ "$(sed -n 1p "$mark")" = "$state" ]; then
    say "installed in $VENV (took $(minutes "$(sed -n 2p "$mark")"))"
    return
  fi
  if [ ! -x "$VENV/bin/python" ]; then
    python=$(find_python)
    say "making the virtual environment $VENV with $python"
    "$python" -m venv "$VENV" || fail "$python can't make a virtual environment (on Debian or Ubuntu: apt install python3-venv)"
  fi
  minor=$(python_minor "$VENV/bin/python")
  say "installing into $VENV (Python 3.$minor)"
  case $minor in
    # Later versions of pip refuse the metadata of what fairseq 0.12.2 depends on.
    10) "$VENV/bin/python" -m pip install --disable-pip-version-check 'pip<24.1' ;;
    11 | 12) ;;
    *) fail "$VENV has Python ${minor:+3.}${minor:-that does not run}; remove the folder, and it is made again with 3.10, 3.11 or 3.12" ;;
  esac
  "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input \
    -c "$ROOT/constraints.txt" -e "$ROOT${extras:+[$extras]}"
  printf '%s\n' "$state" $((SECONDS - start)) >"$mark.tmp"
  mv "$mark.tmp" "$mark"
  say "installation: $(minutes $((SECONDS - start)))"
}

# step NAME COMMAND...: runs a step once. $STEPS/NAME.done, with the seconds that it took, is written when it succeeds;
# then the step is skipped. A step must leave nothing under a final name unless it is complete.
step() {
  local name=$1 start=$SECONDS
  shift
  if [ -e "$STEPS/$name.done" ]; then
    say "$name: done before, in $(minutes "$(cat "$STEPS/$name.done")")"
    return
  fi
  say "$name"
  mkdir -p "$STEPS"
  "$@"
  printf '%d\n' $((SECONDS - start)) >"$STEPS/$name.done.tmp"
  mv "$STEPS/$name.done.tmp" "$STEPS/$name.done"
  say "$name: $(minutes $((SECONDS - start)))"
}

# same_settings FILE TEXT: refuses a run folder that was begun with other settings, whose steps would be mixed.
same_settings() {
  if [ ! -e "$1" ]; then
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "$2" >"$1.tmp"
    mv "$1.tmp" "$1"
  elif [ "$(cat "$1")" != "$2" ]; then
    printf '%s\n' "$2" | diff "$1" - >&2 || true
    usage_error "$(dirname "$1") was begun with other settings (above: < before, > now): remove it, or name another --output"
  fi
}
