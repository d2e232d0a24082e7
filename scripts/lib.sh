# What the scripts share; to be read by them: . "$(dirname "${BASH_SOURCE[0]}")/lib.sh", in dataset folders with /../.
# It answers --help with the comment at the top of the script. Programs (owf, python, ...) are those of the virtual
# environment, or else those on the PATH.
#
# Environment: PYTHON     the interpreter for the virtual environment (default: the first of Python 3.10 to 3.12 found)
#              OWF_VENV   the virtual environment (default: .venv in the checkout)
# shellcheck shell=bash

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${OWF_VENV:-$ROOT/.venv}
PATH=$VENV/bin:$PATH

case ${1:-} in
  --help | -h) sed -n '2,/^[^#]/{/^#/!d; s/^# \{0,1\}//; p;}' "$0" && exit ;;
esac

# say TEXT: a line that stands out from what the programs print.
say() { printf '\n== %s\n' "$*"; }

# fail TEXT: something went wrong that the user didn't cause; usage_error TEXT: a word or a file that can't be used.
fail() { stop 1 "$@"; }
usage_error() { stop 2 "$@"; }
stop() { printf '%s: %s\n' "${0##*/}" "${*:2}" >&2 && exit "$1"; }

# Bash calls this for a program that is nowhere.
command_not_found_handle() {
  local package="-c constraints.txt ."
  [ "$1" != mtdata ] || package="mtdata==0.5.1"
  fail "$1 is neither in $VENV/bin nor on the PATH: run pip install $package in $ROOT, or name the virtual environment" \
    "that has it: OWF_VENV=DIR"
}

# split_words "$@": $NAMES, the words before the first flag, without folder and .yaml; $MODELS, NAME=RUN/NAME for each;
# $FLAGS, the rest; and $NOTES, flags of `owf report`: what it is to say of the training text.
split_words() {
  NAMES=() MODELS=() NOTES=()
  while [ $# -gt 0 ] && [[ $1 != -* ]]; do
    NAMES+=("$(basename "$1" .yaml)")
    shift
  done
  for name in "${NAMES[@]}"; do MODELS+=("$name=$RUN/$name"); done
  # shellcheck disable=SC2034  # the scripts read it
  FLAGS=("$@")
  # shellcheck disable=SC2034
  [ ! -e "$RUN/raw/notes.txt" ] || mapfile -t NOTES < <(sed 's/^/--note=/' "$RUN/raw/notes.txt")
  [ ${#NAMES[@]} -gt 0 ] || usage_error "name at least one model, before all flags; see --help"
}

# text FILE: prints FILE or FILE.gz, whichever is there.
text() { if [ -e "$1" ]; then printf '%s\n' "$1"; else printf '%s.gz\n' "$1"; fi; }

# fetch_test SET SRC-TGT FIELD FILE: a side of one of sacreBLEU's test sets (src, ref, ref:A, ...), unless it is there.
fetch_test() {
  [ ! -e "$4" ] || return 0
  mkdir -p "$(dirname "$4")"
  sacrebleu --test-set "$1" --language-pair "$2" --echo "$3" >"$4.part"
  mv "$4.part" "$4"
}

COMET=() # the metric, if it is installed
# shellcheck disable=SC2034  # the scripts read it
! type -P comet-score >/dev/null || COMET=(comet)

# minutes SECONDS: "3 min 05 s".
minutes() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

# python_minor INTERPRETER: its minor version if it is Python 3 and runs, else nothing.
python_minor() { "$1" -c 'import sys; print(sys.version_info[1] if sys.version_info[0] == 3 else "")' 2>/dev/null || true; }

# find_python: prints the interpreter to use. On 3.11 and 3.12 fairseq installs as a wheel, on 3.10 it is compiled.
find_python() {
  local candidate wanted
  for wanted in '1[12]' 10; do
    for candidate in ${PYTHON:-python3 python3.12 python3.11 python3.10 python}; do
      # shellcheck disable=SC2053  # a pattern
      [[ $(python_minor "$candidate") != $wanted ]] || { printf '%s\n' "$candidate" && return; }
    done
  done
  [ -z "${PYTHON:-}" ] || usage_error "PYTHON=$PYTHON must be Python 3.10, 3.11 or 3.12, but is not, or does not run"
  usage_error "no Python 3.10, 3.11 or 3.12 found: install one, or name it: PYTHON=/path/to/python3.11 bash $0"
}

# constraints: the file of tested versions for this machine's GPUs.
constraints() { "$VENV/bin/python" "$ROOT/owf_fairseq/doctor/gpus.py"; }

# ensure_venv [EXTRAS]: makes the virtual environment and installs the checkout into it, with the tested versions.
# Does nothing when that was done before with the same pyproject.toml and constraints.
ensure_venv() {
  local mark=$VENV/.installed${1:+-$1} python start=$SECONDS state
  state=$(cat "$ROOT/pyproject.toml" "$ROOT"/constraints*.txt | cksum)
  if [ "$(head -n 1 "$mark" 2>/dev/null)" = "$state" ]; then
    say "installed in $VENV (took $(minutes "$(tail -n 1 "$mark")"))"
    return
  fi
  if [ ! -x "$VENV/bin/python" ]; then
    python=$(find_python)
    say "making the virtual environment $VENV with $python"
    "$python" -m venv "$VENV" || fail "$python can't make one (on Debian or Ubuntu: apt install python3-venv)"
  fi
  case $(python_minor "$VENV/bin/python") in
    # Later versions of pip refuse the metadata of what fairseq 0.12.2 depends on.
    10) "$VENV/bin/python" -m pip install --disable-pip-version-check 'pip<24.1' ;;
    11 | 12) ;;
    *) fail "$VENV must have Python 3.10, 3.11 or 3.12 that runs: remove the folder, and it is made again" ;;
  esac
  say "installing into $VENV, with the versions of $(constraints)"
  "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input -c "$ROOT/$(constraints)" -e "$ROOT${1:+[$1]}"
  printf '%s\n' "$state" $((SECONDS - start)) >"$mark.tmp"
  mv "$mark.tmp" "$mark"
  say "installation: $(minutes $((SECONDS - start)))"
}
