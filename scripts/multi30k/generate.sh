#!/usr/bin/env bash
# Translates Multi30k's test set with trained models: test.de in the folder of each.
#
#   bash scripts/multi30k/generate.sh multi30k/small multi30k/small_one_wide_ffn
#   CHECKPOINT=checkpoint_last.pt bash scripts/multi30k/generate.sh multi30k/small --beam 1
#
# Words: models, as for train.sh, then flags of `owf translate`.
# Environment: RUN, the run's folder (runs/multi30k); CHECKPOINT (checkpoint_best.pt);
# TEST_SET, to translate TEST_SET.en (RUN/raw/test)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multi30k}
split_words "$@"
for name in "${NAMES[@]}"; do
  owf translate "$RUN/$name/${CHECKPOINT:-checkpoint_best.pt}" --input "${TEST_SET:-$RUN/raw/test}.en" \
    --output "$RUN/$name/test.de" "${FLAGS[@]}"
done
