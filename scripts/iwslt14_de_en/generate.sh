#!/usr/bin/env bash
# Translates IWSLT14's test set with the average of the last checkpoints of trained models: test.en and test.tok.
#
#   bash scripts/iwslt14_de_en/generate.sh iwslt14_de_en/iwslt iwslt14_de_en/iwslt_one_wide_ffn
#
# Words: models, as for train.sh, then flags of `owf translate`.
# Environment: RUN, the run's folder (runs/iwslt14_de_en); LAST, checkpoints to average (10)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/iwslt14_de_en}
split_words "$@"
for name in "${NAMES[@]}"; do
  owf average "$RUN/$name" --last "${LAST:-10}" --output "$RUN/$name/averaged.pt"
  owf translate "$RUN/$name/averaged.pt" --segmentation none --input "$RUN/data/encoded/test.de" \
    --output "$RUN/$name/test.pieces" "${FLAGS[@]}"
  python "$ROOT/scripts/iwslt14_de_en/tokens.py" "$RUN/data" --translation "$RUN/$name/test.pieces"
done
