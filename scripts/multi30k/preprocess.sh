#!/usr/bin/env bash
# Prepares Multi30k for fairseq: one SentencePiece vocabulary for both languages, binary data.
#
#   bash scripts/multi30k/preprocess.sh --vocab-size 4000
#
# Words: flags of `owf prepare`, which win over those below.
# Environment: RUN, the run's folder with raw/, where data/ is made (runs/multi30k)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multi30k}
owf prepare --train "$RUN/raw/train" --valid "$RUN/raw/valid" --test "$RUN/raw/test" --langs en-de \
  --vocab-size 6000 --character-coverage 1.0 --output "$RUN/data" "$@"
