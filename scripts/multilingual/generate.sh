#!/usr/bin/env bash
# Translates FLORES' test set in all directions with trained models. Started again, it goes on with the directions that
# are not there yet.
#
#   bash scripts/multilingual/generate.sh multilingual/big multilingual/big_one_wide_ffn --fp16
#   bash scripts/multilingual/generate.sh multilingual/big --directions de-en en-de
#
# Words: models, as for train.sh, then flags of `owf multilingual translate`.
# Environment: RUN, the run's folder (runs/multilingual), where NAME/test/test.A-B.B are made; CHECKPOINT
# (checkpoint_best.pt); TEST_SET, a folder with test.LANG (RUN/test)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multilingual}
split_words "$@"
for name in "${NAMES[@]}"; do
  owf multilingual translate "$RUN/$name/${CHECKPOINT:-checkpoint_best.pt}" --input "${TEST_SET:-$RUN/test}" \
    --output "$RUN/$name/test" "${FLAGS[@]}"
done
