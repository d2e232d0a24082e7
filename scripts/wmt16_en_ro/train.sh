#!/usr/bin/env bash
# Trains models on WMT16 English-Romanian; one that was interrupted goes on.
#
#   bash scripts/wmt16_en_ro/train.sh base base_one_wide_ffn
#   bash scripts/wmt16_en_ro/train.sh base --max-update 1000 --save-interval-updates 500
#
# CONFIG ...    names of files in configs/wmt16_en_ro, without .yaml, or paths of such files
# --output DIR  the run's folder (default: runs/wmt16_en_ro); reads its data/, makes a folder for each CONFIG
# All other words are fairseq-train's, and go to `owf train`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG" "owf train" "$@"

{
  train_configs
  exit
}
