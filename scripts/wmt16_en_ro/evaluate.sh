#!/usr/bin/env bash
# Scores translations of newstest2016, beside the paper's: BLEU, chrF, COMET if it is installed; do models
# differ from the first?
#
#   bash scripts/wmt16_en_ro/evaluate.sh wmt16_en_ro/base wmt16_en_ro/base_one_wide_ffn
#   SPEED=100 bash scripts/wmt16_en_ro/evaluate.sh wmt16_en_ro/base --metrics bleu
#
# Words: models, as for train.sh, then flags of `owf evaluate`.
# Environment: RUN, CHECKPOINT, TEST_SET as for generate.sh; TABLE of the paper (other);
# SPEED, sentences to measure the speed on as well, as the paper does: one at a time, beam 5

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt16_en_ro}
TEST_SET=${TEST_SET:-$RUN/raw/test}
split_words "$@"

owf evaluate "${MODELS[@]/%//test.ro}" --ref "$TEST_SET.ro" --src "$TEST_SET.en" --target-lang ro \
  --baseline "${NAMES[0]}" --metrics bleu chrf "${COMET[@]}" --json "$RUN/scores.json" --overwrite "${FLAGS[@]}"
[ -z "${SPEED:-}" ] || owf benchmark "${MODELS[@]/%//${CHECKPOINT:-checkpoint_best.pt}}" --input "$TEST_SET.en" --sentences "$SPEED" \
  --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-other}" --pair en-ro --only-ours \
  --output "$RUN/table.md" --overwrite "${NOTES[@]}"
