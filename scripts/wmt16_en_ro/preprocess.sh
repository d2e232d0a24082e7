#!/usr/bin/env bash
# Prepares WMT16 English-Romanian for fairseq: Moses' tokens, joint BPE of 40,000 merges, binary data.
#
#   bash scripts/wmt16_en_ro/preprocess.sh --vocab-size 10000
#
# Words: flags of `owf prepare`, which win over those below; --vocab-size is the number of merges.
# Environment: RUN, the run's folder with raw/, where data/ is made (runs/wmt16_en_ro)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt16_en_ro}
owf prepare --train "$RUN/raw/train" --valid "$RUN/raw/valid" --test "$RUN/raw/test" --langs en-ro \
  --segmentation moses-bpe --vocab-size 40000 --output "$RUN/data" "$@"
