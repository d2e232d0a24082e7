#!/usr/bin/env bash
# Translates newstest2016, English to Romanian, with trained models.
#
#   bash scripts/wmt16_en_ro/generate.sh base base_one_wide_ffn
#   bash scripts/wmt16_en_ro/generate.sh base --checkpoint checkpoint_last.pt --limit 100
#
# CONFIG ...         as in train.sh
# --checkpoint NAME  of the CONFIG's folder (default: checkpoint_best.pt)
# --limit N          translate the first N sentences
# --output DIR       the run's folder (default: runs/wmt16_en_ro); makes test.ro in the folder of each CONFIG
# All other words go to `owf translate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG --checkpoint= --limit=" "owf translate" "$@"

{
  translate_test en ro
  exit
}
