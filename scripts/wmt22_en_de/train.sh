#!/usr/bin/env bash
# Trains models on WMT22 English-German; one that was interrupted goes on.
#
#   bash scripts/wmt22_en_de/train.sh big big_one_wide_ffn
#   bash scripts/wmt22_en_de/train.sh big --max-update 1000 --save-interval-updates 500
#
# CONFIG ...    names of files in configs/wmt22_en_de, without .yaml, or paths of such files
# --output DIR  the run's folder (default: runs/wmt22_en_de); reads its data/, makes a folder for each CONFIG
# All other words are fairseq-train's, and go to `owf train`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG" "owf train" "$@"

{
  train_configs
  exit
}
