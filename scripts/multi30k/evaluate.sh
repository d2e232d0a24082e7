#!/usr/bin/env bash
# Scores translations of Multi30k's test set: BLEU and chrF, and whether models differ from the first.
#
#   bash scripts/multi30k/evaluate.sh small small_one_wide_ffn
#   bash scripts/multi30k/evaluate.sh small --limit 100
#
# CONFIG ...         as in train.sh; the others are compared with the first
# --table NAME       of the paper, whose rows stand beside (default: one_wide; see `owf report --help`)
# --limit N          as in generate.sh
# --speed N          measure the speed too, on the first N sentences
# --checkpoint NAME  whose speed is measured, of the CONFIG's folder; as in generate.sh (default: checkpoint_best.pt)
# --cpu              use no GPU, for COMET and the speed
# --output DIR       the run's folder (default: runs/multi30k); makes scores.json, speed.json, table.md
# All other words go to `owf evaluate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG --table= --limit= --speed= --checkpoint= --cpu" "owf evaluate" "$@"

{
  evaluate_test en de "$OUTPUT/raw/test.de"
  exit
}
