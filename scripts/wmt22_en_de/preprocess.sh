#!/usr/bin/env bash
# Prepares WMT22 English-German for fairseq: one SentencePiece vocabulary for both languages, binary data in shards.
#
#   bash scripts/wmt22_en_de/preprocess.sh --workers 8
#
# Words: flags of `owf prepare`, which win over those below: --vocab-size N is the rows of the embeddings, that is
# pieces and fairseq's four symbols (50408, which the paper's parameter counts need; its text says 32K: see the README).
# Environment: RUN, the run's folder with raw/, where data/ is made (runs/wmt22_en_de)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt22_en_de}
owf prepare --train "$RUN/raw/train" --valid "$RUN/raw/valid" --test "$RUN/raw/test" --langs en-de \
  --vocab-size 50408 --character-coverage 1.0 --shards 16 --output "$RUN/data" "$@"
