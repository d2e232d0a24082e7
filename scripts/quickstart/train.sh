#!/usr/bin/env bash
# Trains models on the quickstart's text; one that was interrupted goes on.
#
#   bash scripts/quickstart/train.sh small small_one_wide_ffn --cpu
#   bash scripts/quickstart/train.sh small --cpu --max-update 500
#
# CONFIG ...    names of files in configs/quickstart, without .yaml, or paths of such files
# --output DIR  the run's folder (default: runs/quickstart-en-de); reads its data/, makes a folder for each CONFIG
# All other words are fairseq-train's, and go to `owf train`. The languages are those of the run's folder.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "CONFIG" "owf train" "$@"

{
  needs "$OUTPUT/data" preprocess.sh
  needs "$OUTPUT/langs.txt" download.sh
  read -r source target <"$OUTPUT/langs.txt"
  REST=(--source-lang "$source" --target-lang "$target" ${REST[@]+"${REST[@]}"})
  train_configs
  exit
}
