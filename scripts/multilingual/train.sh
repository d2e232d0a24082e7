#!/usr/bin/env bash
# Trains multilingual models; one that was interrupted goes on.
#
#   bash scripts/multilingual/train.sh big big_one_wide_ffn
#   bash scripts/multilingual/train.sh big --max-update 1000 --save-interval-updates 500
#
# CONFIG ...    names of files in configs/multilingual, without .yaml, or paths of such files
# --output DIR  the run's folder (default: runs/multilingual); reads its data/, makes a folder for each CONFIG
# All other words are fairseq-train's, and go to `owf train`. The languages are those of the run's folder.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/languages.sh"
parse "CONFIG" "owf train" "$@"

{
  needs "$OUTPUT/data" preprocess.sh
  read_languages
  list_pairs
  IFS=,
  REST=(--langs "${languages[*]}" --lang-pairs "${directions[*]}" ${REST[@]+"${REST[@]}"})
  unset IFS
  train_configs
  exit
}
