#!/usr/bin/env bash
# Scores translations of the WMT22 general test set, beside the paper's: BLEU, chrF, COMET if it is installed; do models
# differ from the first?
#
#   bash scripts/wmt22_en_de/evaluate.sh wmt22_en_de/big wmt22_en_de/big_one_wide_ffn
#   SPEED=100 bash scripts/wmt22_en_de/evaluate.sh wmt22_en_de/big --metrics bleu
#
# Words: models, as for train.sh, then flags of `owf evaluate`:
# --ref A.de B.de scores with references A and B (default: A, as the paper's signature nrefs:1 says).
# Environment: RUN, CHECKPOINT, TEST_SET as for generate.sh; TABLE of the paper (one_wide);
# SPEED, sentences to measure the speed on as well, as the paper does: one at a time, beam 5

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt22_en_de}
TEST_SET=${TEST_SET:-$RUN/raw/test}
split_words "$@"

owf evaluate "${MODELS[@]/%//test.de}" --ref "$TEST_SET.de" --src "$TEST_SET.en" --target-lang de \
  --baseline "${NAMES[0]}" --metrics bleu chrf "${COMET[@]}" --json "$RUN/scores.json" --overwrite "${FLAGS[@]}"
[ -z "${SPEED:-}" ] || owf benchmark "${MODELS[@]/%//${CHECKPOINT:-checkpoint_best.pt}}" --input "$TEST_SET.en" --sentences "$SPEED" \
  --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-one_wide}" --pair en-de --only-ours \
  --output "$RUN/table.md" --overwrite "${NOTES[@]}"
