#!/usr/bin/env bash
# Translates newstest2016 with trained models: test.ro in the folder of each.
#
#   bash scripts/wmt16_en_ro/generate.sh wmt16_en_ro/base wmt16_en_ro/base_one_wide_ffn
#   CHECKPOINT=checkpoint_last.pt bash scripts/wmt16_en_ro/generate.sh wmt16_en_ro/base --beam 1
#
# Words: models, as for train.sh, then flags of `owf translate`.
# Environment: RUN, the run's folder (runs/wmt16_en_ro); CHECKPOINT (checkpoint_best.pt);
# TEST_SET, to translate TEST_SET.en (RUN/raw/test)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt16_en_ro}
split_words "$@"
for name in "${NAMES[@]}"; do
  owf translate "$RUN/$name/${CHECKPOINT:-checkpoint_best.pt}" --input "${TEST_SET:-$RUN/raw/test}.en" \
    --output "$RUN/$name/test.ro" "${FLAGS[@]}"
done
