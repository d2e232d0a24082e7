#!/usr/bin/env bash
# Reproduces a table of the paper on a dataset, its similarity tables included: fetches and prepares the text with the
# dataset's scripts, then trains the model of every row, translates, scores, measures the speed and prints the table,
# the paper's numbers beside (`owf reproduce`).
#
#   bash scripts/reproduce_tables.sh --table one_wide --dataset multi30k
#   LIMIT=5000 bash scripts/reproduce_tables.sh --table dropping --dataset quickstart --max-update 500
#   PREPARED=yes bash scripts/reproduce_tables.sh --table one_wide --dataset wmt22_en_de --max-tokens 7168
#
# Flags: those of `owf reproduce`, and fairseq-train's: see `owf reproduce --help`; --dry-run prints the commands alone.
# Environment: RUN, the run's folder (runs/DATASET, or runs/quickstart-SOURCE-TARGET); LOCAL, a folder to take the text
# from, and fetch nothing; LIMIT, training pairs to keep; WITHOUT, corpora to leave out, with spaces between; VOCAB_SIZE of
# the segmentation (the dataset's); SOURCE, TARGET, languages of quickstart (en, de); LANGUAGES of multilingual, with
# spaces between (its ten); PREPARED=yes: text and data are there already
#
# It can be interrupted and started again.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
for ((i = 1; i < $#; i++)); do
  [ "${!i}" != --dataset ] || DATASET=${*:i+1:1}
done
SOURCE=${SOURCE:-en} TARGET=${TARGET:-de}
case ${DATASET:-} in
  quickstart) RUN=${RUN:-$ROOT/runs/quickstart-$SOURCE-$TARGET} words=(--source-lang "$SOURCE" --target-lang "$TARGET") ;;
  multilingual) words=(${LANGUAGES:+--langs "$(tr ' ' '\n' <<<"$LANGUAGES" | LC_ALL=C sort -u | paste -s -d ,)"}) ;;
  *) words=() ;;
esac
export RUN=${RUN:-$ROOT/runs/${DATASET:-}} SOURCE TARGET

# in braces, so that the script is read to its end before it runs: it may be changed, by git, while it does
{
  owf reproduce "$@" "${words[@]}" --run "$RUN" --dry-run >/dev/null # what is wrong shows before anything is fetched
  if [ -z "${PREPARED:-}" ] && [[ " $* " != *" --dry-run "* ]]; then
    read -ra without <<<"${WITHOUT:-}"
    bash "$ROOT/scripts/$DATASET/download.sh" ${LIMIT:+--limit "$LIMIT"} "${without[@]/#/--without=}"
    bash "$ROOT/scripts/$DATASET/preprocess.sh" ${VOCAB_SIZE:+--vocab-size "$VOCAB_SIZE"}
  fi
  exec owf reproduce "$@" "${words[@]}" --run "$RUN"
}
