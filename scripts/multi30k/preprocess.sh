#!/usr/bin/env bash
# Prepares Multi30k for fairseq: one SentencePiece vocabulary for both languages, binary data.
#
#   bash scripts/multi30k/preprocess.sh
#   bash scripts/multi30k/preprocess.sh --vocab-size 4000
#
# --workers N   processes (default: as many as there are cores)
# --output DIR  the run's folder (default: runs/multi30k); reads its raw/, makes its data/
# All other words go to `owf prepare`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "--workers=" "owf prepare" "$@"

{
  prepare_data en de --vocab-size 6000 --character-coverage 1.0
  exit
}
