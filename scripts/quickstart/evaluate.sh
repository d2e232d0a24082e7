#!/usr/bin/env bash
# Scores translations of the quickstart's test set: BLEU and chrF, and whether models differ from the first; prints them
# beside the paper's for WMT22 English-German, whatever the languages.
#
#   bash scripts/quickstart/evaluate.sh small small_one_wide_ffn --speed 100
#   bash scripts/quickstart/evaluate.sh small --limit 100
#
# CONFIG ...         as in train.sh; the others are compared with the first
# --table NAME       of the paper, whose rows stand beside (default: one_wide; see `owf report --help`)
# --limit N          as in generate.sh
# --speed N          measure the speed too, on the first N sentences
# --checkpoint NAME  whose speed is measured, of the CONFIG's folder; as in generate.sh (default: checkpoint_best.pt)
# --cpu              use no GPU, for COMET and the speed
# --output DIR       the run's folder (default: runs/quickstart-en-de); makes scores.json, speed.json, table.md
# All other words go to `owf evaluate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
PAIR=en-de
parse "CONFIG --table= --limit= --speed= --checkpoint= --cpu" "owf evaluate" "$@"

{
  needs "$OUTPUT/langs.txt" download.sh
  read -r source target <"$OUTPUT/langs.txt"
  # for these two, sacreBLEU's own tokenizers need MeCab
  case $target in
    ja) REST=(--tokenize char ${REST[@]+"${REST[@]}"}) ;;
    ko) REST=(--tokenize 13a ${REST[@]+"${REST[@]}"}) ;;
  esac
  evaluate_test "$source" "$target" "$OUTPUT/raw/test.$target"
  exit
}
