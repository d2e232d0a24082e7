#!/usr/bin/env bash
# Prepares WMT16 English-Romanian for fairseq: Moses' tokens, joint BPE of 40,000 merges, binary data.
#
#   bash scripts/wmt16_en_ro/preprocess.sh
#   bash scripts/wmt16_en_ro/preprocess.sh --vocab-size 10000
#
# --workers N   processes (default: as many as there are cores)
# --output DIR  the run's folder (default: runs/wmt16_en_ro); reads its raw/, makes its data/
# All other words go to `owf prepare`, whose --vocab-size is here the number of merges.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "--workers=" "owf prepare" "$@"

{
  prepare_data en ro --segmentation moses-bpe --vocab-size 40000
  exit
}
