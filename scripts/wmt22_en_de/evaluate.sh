#!/usr/bin/env bash
# Scores translations of the WMT22 general test set: BLEU, chrF, COMET if it is installed, and whether models differ
# from the first; prints them beside the paper's.
#
#   bash scripts/wmt22_en_de/evaluate.sh big big_one_wide_ffn
#   bash scripts/wmt22_en_de/evaluate.sh big big_no_dec --table dropping --metrics bleu chrf
#
# CONFIG ...         as in train.sh; the others are compared with the first
# --both-references  score with references A and B (default: A only, as the paper's signature nrefs:1 says)
# --table NAME       of the paper, whose rows stand beside (default: one_wide; see `owf report --help`)
# --limit N          as in generate.sh
# --speed N          measure the speed too, on the first N sentences
# --checkpoint NAME  whose speed is measured, of the CONFIG's folder; as in generate.sh (default: checkpoint_best.pt)
# --cpu              use no GPU, for COMET and the speed
# --output DIR       the run's folder (default: runs/wmt22_en_de); makes scores.json, speed.json, table.md
# All other words go to `owf evaluate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
BOTH_REFERENCES=
parse "CONFIG --both-references --table= --limit= --speed= --checkpoint= --cpu" "owf evaluate" "$@"

{
  add_comet
  evaluate_test en de "$OUTPUT/raw/test.de" ${BOTH_REFERENCES:+"$OUTPUT/raw/test.refB.de"}
  exit
}
