#!/usr/bin/env bash
# Prepares WMT22 English-German for fairseq: one SentencePiece vocabulary for both languages, binary data in shards.
#
#   bash scripts/wmt22_en_de/preprocess.sh
#   bash scripts/wmt22_en_de/preprocess.sh --vocab-rows 50408
#
# --vocab-rows N  rows of the embeddings, that is pieces and fairseq's four symbols (default: 32000, as the paper's text
#                 says; its parameter counts need 50408: see the README)
# --workers N     processes (default: as many as there are cores)
# --output DIR    the run's folder (default: runs/wmt22_en_de); reads its raw/, makes its data/
# All other words go to `owf prepare`: --shards N (default: 16), ...

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
VOCAB_ROWS=32000
parse "--vocab-rows= --workers=" "owf prepare" "$@"

{
  prepare_data en de --vocab-size "$VOCAB_ROWS" --character-coverage 1.0 --shards 16
  exit
}
