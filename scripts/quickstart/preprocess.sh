#!/usr/bin/env bash
# Prepares the quickstart's text for fairseq: one SentencePiece vocabulary for both languages, binary data.
#
#   bash scripts/quickstart/preprocess.sh --vocab-size 2000
#
# Words: flags of `owf prepare`, which win over those below.
# Environment: RUN, the run's folder with raw/, where data/ is made (runs/quickstart-SOURCE-TARGET); SOURCE, TARGET (en, de)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
SOURCE=${SOURCE:-en} TARGET=${TARGET:-de}
RUN=${RUN:-$ROOT/runs/quickstart-$SOURCE-$TARGET}
owf prepare --train "$RUN/raw/train" --valid "$RUN/raw/valid" --test "$RUN/raw/test" --langs "$SOURCE-$TARGET" \
  --vocab-size 3000 --output "$RUN/data" "$@"
