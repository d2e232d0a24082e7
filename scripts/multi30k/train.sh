#!/usr/bin/env bash
# Trains models on Multi30k; one that was interrupted goes on.
#
#   bash scripts/multi30k/train.sh small small_one_wide_ffn --cpu
#   bash scripts/multi30k/train.sh small --cpu --max-update 500 --num-workers 0
#
# CONFIG ...    names of files in configs/multi30k, without .yaml, or paths of such files
# --output DIR  the run's folder (default: runs/multi30k); reads its data/, makes a folder for each CONFIG
# All other words are fairseq-train's, and go to `owf train`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG" "owf train" "$@"

{
  train_configs
  exit
}
