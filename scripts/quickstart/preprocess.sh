#!/usr/bin/env bash
# Prepares the quickstart's text for fairseq: one SentencePiece vocabulary for both languages, binary data.
#
#   bash scripts/quickstart/preprocess.sh
#   bash scripts/quickstart/preprocess.sh --vocab-size 2000
#
# --workers N   processes (default: as many as there are cores)
# --output DIR  the run's folder (default: runs/quickstart-en-de); reads its raw/, makes its data/
# All other words go to `owf prepare`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "--workers=" "owf prepare" "$@"

{
  needs "$OUTPUT/langs.txt" download.sh
  read -r source target <"$OUTPUT/langs.txt"
  prepare_data "$source" "$target" --vocab-size 3000
  exit
}
