#!/usr/bin/env bash
# Translates the WMT22 general test set with trained models: test.de in the folder of each.
#
#   bash scripts/wmt22_en_de/generate.sh wmt22_en_de/big wmt22_en_de/big_one_wide_ffn
#   CHECKPOINT=checkpoint_last.pt bash scripts/wmt22_en_de/generate.sh wmt22_en_de/big --beam 1
#
# Words: models, as for train.sh, then flags of `owf translate`.
# Environment: RUN, the run's folder (runs/wmt22_en_de); CHECKPOINT (checkpoint_best.pt);
# TEST_SET, to translate TEST_SET.en (RUN/raw/test)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt22_en_de}
split_words "$@"
for name in "${NAMES[@]}"; do
  owf translate "$RUN/$name/${CHECKPOINT:-checkpoint_best.pt}" --input "${TEST_SET:-$RUN/raw/test}.en" \
    --output "$RUN/$name/test.de" "${FLAGS[@]}"
done
