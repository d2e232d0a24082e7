#!/usr/bin/env bash
# Scores translations of newstest2016: BLEU, chrF, COMET if it is installed, and whether models differ from the first;
# prints them beside the paper's. The reference has commas below, as the translations have.
#
#   bash scripts/wmt16_en_ro/evaluate.sh base base_one_wide_ffn
#   bash scripts/wmt16_en_ro/evaluate.sh base --metrics bleu chrf --limit 100
#
# CONFIG ...         as in train.sh; the others are compared with the first
# --table NAME       of the paper, whose rows stand beside (default: other; see `owf report --help`)
# --limit N          as in generate.sh
# --speed N          measure the speed too, on the first N sentences
# --checkpoint NAME  whose speed is measured, of the CONFIG's folder; as in generate.sh (default: checkpoint_best.pt)
# --cpu              use no GPU, for COMET and the speed
# --output DIR       the run's folder (default: runs/wmt16_en_ro); makes scores.json, speed.json, table.md
# All other words go to `owf evaluate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
TABLE=other
parse "CONFIG --table= --limit= --speed= --checkpoint= --cpu" "owf evaluate" "$@"

{
  add_comet
  evaluate_test en ro "$OUTPUT/raw/test.ro"
  exit
}
