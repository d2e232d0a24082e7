#!/usr/bin/env bash
# Reproduces a table of the paper on a dataset: fetches and prepares the text, trains the model of every row, translates
# the test set, scores the translations, measures how fast the models decode, and prints the table last, the paper's
# numbers beside. It calls the dataset's own scripts, in scripts/DATASET.
#
#   bash scripts/reproduce_tables.sh --table one_wide --dataset multi30k
#   bash scripts/reproduce_tables.sh --table dropping --dataset quickstart --limit 5000 --max-update 500
#   bash scripts/reproduce_tables.sh --table one_wide --dataset wmt22_en_de --prepared --max-tokens 7168
#
# --dataset NAME    multi30k, quickstart, wmt22_en_de, wmt16_en_ro or multilingual
# --table NAME      of the paper: sharing, dropping, one_wide (default), other, custom_sharing or attention; each dataset
#                   has the rows that `owf configs --table NAME --dataset NAME` prints
# --local DIR       take the text from a folder, and fetch nothing: see scripts/DATASET/download.sh
# --langs LANGS     other languages than the dataset's, where its download.sh has that flag
# --limit N         keep the first N training pairs
# --vocab-size N    of the segmentation that is learnt (default: the dataset's)
# --prepared        the run's folder has its text and data already: download and preprocess nothing
# --sentences N     translate and score the first N sentences of the test set (default: all)
# --speed N         measure the speed on the first N of them (default: 100); for multilingual, the direction (de-en)
# --jobs N          models that are trained at a time (default: without a GPU, as many as there are cores, each with one
#                   thread; with GPUs 1, which uses all of them)
# --cpu             use no GPU
# --output DIR      the run's folder (default: the dataset's, runs/DATASET); makes scores.json, speed.json and table.md
# All other words are fairseq-train's, and go to `owf train`, for every row: --max-update N, ...
#
# It can be interrupted and started again: finished steps are kept, and training goes on from its last checkpoint.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/walk.sh"
DATASET=
PREPARED=
SPEED=
parse "--dataset= --table= --local= --langs= --limit= --vocab-size= --prepared --sentences= --speed= --jobs= --cpu" \
  "owf train" "$@"
TRAINING=(${REST[@]+"${REST[@]}"})

# check_direction: $SPEED must be between two of the languages that the text will have, or has.
check_direction() {
  local languages=$LANGS source=${SPEED%%-*} target=${SPEED#*-}
  if [ -n "$PREPARED" ] && [ -e "$OUTPUT/langs.txt" ]; then
    languages=$(cat "$OUTPUT/langs.txt")
  elif [ -z "$languages" ]; then
    languages=$(sed -n 's/^LANGS="\(.*\)"$/\1/p' "$ROOT/scripts/$DATASET/download.sh")
  fi
  if [[ $source == "$target" || " $languages " != *" $source "* || " $languages " != *" $target "* ]]; then
    usage_error "--speed must be A-B, two of the languages $languages, but is $SPEED"
  fi
}

# A function, so that the script is read to its end before it runs: it may be changed, by git, while it does.
main() {
  local rows
  [ -n "$DATASET" ] || usage_error "name the data, --dataset NAME; see --help"
  rows=$(owf configs --table "$TABLE" --dataset "$DATASET") || exit
  read -r -d '' -a CONFIGS <<<"$rows" || true
  case $DATASET in
    multilingual) SPEED=${SPEED:-de-en} && check_direction ;;
    *) SPEED=${SPEED:-100} && whole_number --speed "$SPEED" ;;
  esac
  if [ -n "$LANGS" ] && ! grep -q -e '--langs=' "$ROOT/scripts/$DATASET/download.sh"; then
    usage_error "--langs: $DATASET has no other languages"
  fi
  check_training
  start_clock
  say "table $TABLE on $DATASET: ${#CONFIGS[@]} rows, $OUTPUT"
  [ -n "$PREPARED" ] || prepare_text
  train_all
  translate_all
  make_table
  say "all took $(minutes "$(seconds_spent)"); $OUTPUT/table.md"
}

{
  main
  exit
}
