#!/usr/bin/env bash
# Scores translations of Multi30k's test set (BLEU, chrF): are differences significant? The paper's beside.
#
#   bash scripts/multi30k/evaluate.sh multi30k/small multi30k/small_one_wide_ffn
#   SPEED=100 bash scripts/multi30k/evaluate.sh multi30k/small --metrics bleu
#
# Words: models, as for train.sh, then flags of `owf evaluate`; --fp16, of `owf benchmark`.
# Environment: RUN, CHECKPOINT, TEST_SET as for generate.sh; TABLE of the paper (one_wide);
# SPEED, sentences to measure the speed on as well, or all, as the paper does: one at a time, beam 5

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multi30k}
TEST_SET=${TEST_SET:-$RUN/raw/test}
split_words "$@"

owf evaluate "${MODELS[@]/%//test.de}" --ref "$TEST_SET.de" --src "$TEST_SET.en" --target-lang de \
  --by-size --metrics bleu chrf --json "$RUN/scores.json" --overwrite "${SCORING[@]}"
[ -z "${SPEED:-}" ] || owf benchmark "${MODELS[@]/%//${CHECKPOINT:-checkpoint_best.pt}}" --input "$TEST_SET.en" "${TIMING[@]}" \
  --by-size --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-one_wide}" --pair en-de --only-ours \
  --output "$RUN/table.md" --overwrite
