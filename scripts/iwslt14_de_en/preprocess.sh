#!/usr/bin/env bash
# Prepares IWSLT14 German-English for fairseq: Moses' tokens in small letters, joint BPE of 10,000 merges, binary data.
#
#   bash scripts/iwslt14_de_en/preprocess.sh --vocab-size 8000
#
# Words: flags of `owf prepare`, which win over those below; --vocab-size is the number of merges.
# Environment: RUN, the run's folder with raw/, where data/ is made (runs/iwslt14_de_en)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/iwslt14_de_en}
[ -e "$RUN/raw/flags" ] || usage_error "$RUN/raw has no text: run scripts/iwslt14_de_en/download.sh first"
read -r -a letters <"$RUN/raw/flags" # --lowercase, unless download.sh was given --cased
owf prepare --train "$RUN/raw/train" --valid "$RUN/raw/valid" --test "$RUN/raw/test" --langs de-en \
  --segmentation moses-bpe --vocab-size 10000 "${letters[@]}" --output "$RUN/data" "$@"
