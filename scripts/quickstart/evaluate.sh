#!/usr/bin/env bash
# Scores translations of the quickstart's test set (BLEU, chrF): are differences significant? The paper's beside.
#
#   bash scripts/quickstart/evaluate.sh quickstart/small quickstart/small_one_wide_ffn
#   SPEED=100 bash scripts/quickstart/evaluate.sh quickstart/small --metrics bleu
#
# Words: models, as for train.sh, then flags of `owf evaluate`; --fp16, of `owf benchmark`.
# Environment: RUN, CHECKPOINT, TEST_SET, SOURCE, TARGET as for generate.sh; TABLE of the paper (one_wide);
# SPEED, sentences to measure the speed on as well, or all, as the paper does: one at a time, beam 5

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
SOURCE=${SOURCE:-en} TARGET=${TARGET:-de}
RUN=${RUN:-$ROOT/runs/quickstart-$SOURCE-$TARGET}
TEST_SET=${TEST_SET:-$RUN/raw/test}
split_words "$@"
[ "$TARGET" != ja ] || SCORING=(--tokenize char "${SCORING[@]}") # for these two, sacreBLEU's own need MeCab
[ "$TARGET" != ko ] || SCORING=(--tokenize 13a "${SCORING[@]}")

owf evaluate "${MODELS[@]/%//test.$TARGET}" --ref "$TEST_SET.$TARGET" --src "$TEST_SET.$SOURCE" --target-lang "$TARGET" \
  --baseline "${NAMES[0]}" --metrics bleu chrf --json "$RUN/scores.json" --overwrite "${SCORING[@]}"
[ -z "${SPEED:-}" ] || owf benchmark "${MODELS[@]/%//${CHECKPOINT:-checkpoint_best.pt}}" --input "$TEST_SET.$SOURCE" "${TIMING[@]}" \
  --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-one_wide}" --pair en-de --only-ours ${NOTE:+--note "$NOTE"} \
  --output "$RUN/table.md" --overwrite
