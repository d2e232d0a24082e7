#!/usr/bin/env bash
# Scores translations of FLORES' test set (spBLEU, chrF, COMET if it is there), of each direction and of all together,
# tests for significance, and prints them beside the paper's.
#
#   bash scripts/multilingual/evaluate.sh multilingual/big multilingual/big_one_wide_ffn
#   SPEED=all bash scripts/multilingual/evaluate.sh multilingual/big --metrics spbleu
#
# Words: models, as for train.sh, then flags of `owf evaluate`; --fp16, of `owf multilingual benchmark`.
# Environment: RUN, CHECKPOINT, TEST_SET as for generate.sh; TABLE of the paper (other); SPEED, sentences to measure the
# speed on as well, or all, as the paper does: one at a time, beam 5; DIRECTION of these (de-en)

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multilingual}
TEST_SET=${TEST_SET:-$RUN/test} DIRECTION=${DIRECTION:-de-en}
split_words "$@"

owf evaluate --directions "${MODELS[@]/%//test}" --ref "$TEST_SET" --src "$TEST_SET" --by-size \
  --metrics spbleu chrf "${COMET[@]}" --json "$RUN/scores.json" --overwrite "${SCORING[@]}"
[ -z "${SPEED:-}" ] || owf multilingual benchmark "${MODELS[@]/%//${CHECKPOINT:-checkpoint_best.pt}}" \
  --direction "$DIRECTION" --input "$TEST_SET/test.${DIRECTION%%-*}" "${TIMING[@]}" --by-size --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-other}" --pair multi --only-ours \
  --output "$RUN/table.md" --overwrite "${NOTES[@]}"
