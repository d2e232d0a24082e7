#!/usr/bin/env bash
# Translates Multi30k's test set with trained models.
#
#   bash scripts/multi30k/generate.sh small small_one_wide_ffn
#   bash scripts/multi30k/generate.sh small --checkpoint checkpoint_last.pt --limit 100 --cpu
#
# CONFIG ...         as in train.sh
# --checkpoint NAME  of the CONFIG's folder (default: checkpoint_best.pt)
# --limit N          translate the first N sentences
# --output DIR       the run's folder (default: runs/multi30k); makes test.de in the folder of each CONFIG
# All other words go to `owf translate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG --checkpoint= --limit=" "owf translate" "$@"

{
  translate_test en de
  exit
}
