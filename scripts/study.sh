#!/usr/bin/env bash
# The study that tests the paper's claims with models that two cores can train: Multi30k English-German, 4 + 4 layers.
# Fetches and prepares the text, does the runs whose results are not there yet, and makes the tables; docs/study has more.
#
#   bash scripts/study.sh
#   LOCAL=~/multi30k JOBS=2 bash scripts/study.sh --only attention
#
# --only QUESTION  the runs of one table: main, attention, sharing, layer_norm, layouts, warm_start
# --smoke          a few runs of few updates and few sentences, to see that everything works; all stays in RUN
#
# It can be interrupted and started again with the same flags: trainings go on from their last checkpoint.
# Environment: RUN, for text, data and checkpoints (runs/study); RESULTS, for results (docs/study/runs); TABLES, for tables
# (docs/study); JOBS, runs at a time, of one thread each (the number of cores); LOCAL, a folder with Multi30k; PYTHON, OWF_VENV
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
which=() limit=() updates=() vocabulary=4000 FAILED=''
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) which+=(--smoke) limit=(--limit 300) updates=(--updates 4) vocabulary=300 ;;
    --only)
      [[ ${2:-} == *[![:space:]]* ]] || usage_error "--only needs a value; see --help"
      which+=(--only "$2") && shift
      ;;
    *) usage_error "unknown argument $1; see --help" ;;
  esac
  shift
done
export RUN=${RUN:-$ROOT/runs/study${limit:+-smoke}}
RESULTS=${RESULTS:-${limit:+$RUN/results}} TABLES=${TABLES:-${limit:+$RUN/tables}}
RESULTS=${RESULTS:-$ROOT/docs/study/runs} TABLES=${TABLES:-$ROOT/docs/study}

main() {
  local file here=$ROOT/scripts/study
  ensure_venv plot
  python "$here/missing.py" "${which[@]}" --results "$RESULTS" >/dev/null # what is wrong shows before anything is fetched
  say "text"
  [ -e "$RUN/raw/test.de" ] || bash "$ROOT/scripts/multi30k/download.sh" "${limit[@]}"
  for file in "$RUN"/raw/{valid,test}.{en,de}; do
    [ ${#limit[@]} -eq 0 ] || { head -n 12 "$file" >"$file.part" && mv "$file.part" "$file"; }
  done
  [ -e "$RUN/data" ] || bash "$ROOT/scripts/multi30k/preprocess.sh" --vocab-size "$vocabulary"
  say "runs"
  python "$here/missing.py" "${which[@]}" --results "$RESULTS" |
    xargs -r -L 1 -P "${JOBS:-$(nproc)}" python "$here/run.py" --data "$RUN" --work "$RUN/models" --results "$RESULTS" \
      "${updates[@]}" || FAILED=1
  say "tables"
  python "$here/tables.py" --ref "$RUN/raw/test.de" --results "$RESULTS" --output "$TABLES"
  [ -z "$FAILED" ] || fail "some runs failed, see above; the same command tries them again"
}
{
  main
  exit
}
