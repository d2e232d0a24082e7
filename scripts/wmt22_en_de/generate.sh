#!/usr/bin/env bash
# Translates the WMT22 general test set, English to German, with trained models.
#
#   bash scripts/wmt22_en_de/generate.sh big big_one_wide_ffn
#   bash scripts/wmt22_en_de/generate.sh big --checkpoint checkpoint_last.pt --limit 100
#
# CONFIG ...         as in train.sh
# --checkpoint NAME  of the CONFIG's folder (default: checkpoint_best.pt)
# --limit N          translate the first N segments
# --output DIR       the run's folder (default: runs/wmt22_en_de); makes test.de in the folder of each CONFIG
# All other words go to `owf translate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG --checkpoint= --limit=" "owf translate" "$@"

{
  translate_test en de
  exit
}
