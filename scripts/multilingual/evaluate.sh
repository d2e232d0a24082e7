#!/usr/bin/env bash
# Scores translations of FLORES' test set, of each direction and of all together, beside the paper's: spBLEU, chrF, COMET
# if it is installed; do models differ from the first?
#
#   bash scripts/multilingual/evaluate.sh multilingual/big multilingual/big_one_wide_ffn
#   SPEED=de-en bash scripts/multilingual/evaluate.sh multilingual/big --metrics spbleu
#
# Words: models, as for train.sh, then flags of `owf evaluate`.
# Environment: RUN, CHECKPOINT, TEST_SET as for generate.sh; TABLE of the paper (other); SPEED, a direction to measure the
# speed of as well, as the paper does of de-en: one sentence at a time, beam 5

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multilingual}
TEST_SET=${TEST_SET:-$RUN/test}
split_words "$@"

owf evaluate --directions "${MODELS[@]/%//test}" --ref "$TEST_SET" --src "$TEST_SET" --baseline "${NAMES[0]}" \
  --metrics spbleu chrf "${COMET[@]}" --json "$RUN/scores.json" --overwrite "${FLAGS[@]}"
[ -z "${SPEED:-}" ] || owf multilingual benchmark "${MODELS[@]/%//${CHECKPOINT:-checkpoint_best.pt}}" \
  --direction "$SPEED" --input "$TEST_SET/test.${SPEED%%-*}" --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-other}" --pair multi --only-ours \
  --output "$RUN/table.md" --overwrite "${NOTES[@]}"
