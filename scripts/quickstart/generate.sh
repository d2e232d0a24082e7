#!/usr/bin/env bash
# Translates the quickstart's test set with trained models.
#
#   bash scripts/quickstart/generate.sh small small_one_wide_ffn
#   bash scripts/quickstart/generate.sh small --checkpoint checkpoint_last.pt --limit 100 --cpu
#
# CONFIG ...         as in train.sh
# --checkpoint NAME  of the CONFIG's folder (default: checkpoint_best.pt)
# --limit N          translate the first N sentences
# --output DIR       the run's folder (default: runs/quickstart-en-de); makes test.TGT in the folder of each CONFIG
# All other words go to `owf translate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG --checkpoint= --limit=" "owf translate" "$@"

{
  needs "$OUTPUT/langs.txt" download.sh
  read -r source target <"$OUTPUT/langs.txt"
  translate_test "$source" "$target"
  exit
}
