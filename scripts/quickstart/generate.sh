#!/usr/bin/env bash
# Translates the quickstart's test set with trained models: test.TARGET in the folder of each.
#
#   bash scripts/quickstart/generate.sh quickstart/small quickstart/small_one_wide_ffn
#   CHECKPOINT=checkpoint_last.pt bash scripts/quickstart/generate.sh quickstart/small --beam 1
#
# Words: models, as for train.sh, then flags of `owf translate`.
# Environment: RUN, the run's folder (runs/quickstart-SOURCE-TARGET); SOURCE, TARGET (en, de); CHECKPOINT (checkpoint_best.pt);
# TEST_SET, to translate TEST_SET.SOURCE (RUN/raw/test)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
SOURCE=${SOURCE:-en} TARGET=${TARGET:-de}
RUN=${RUN:-$ROOT/runs/quickstart-$SOURCE-$TARGET}
split_words "$@"
for name in "${NAMES[@]}"; do
  owf translate "$RUN/$name/${CHECKPOINT:-checkpoint_best.pt}" --input "${TEST_SET:-$RUN/raw/test}.$SOURCE" \
    --output "$RUN/$name/test.$TARGET" "${FLAGS[@]}"
done
