#!/usr/bin/env bash
# Scores translations of WMT22 (BLEU, chrF, COMET if installed): are differences significant? The paper's beside.
#
#   bash scripts/wmt22_en_de/evaluate.sh wmt22_en_de/big wmt22_en_de/big_one_wide_ffn
#   SPEED=100 bash scripts/wmt22_en_de/evaluate.sh wmt22_en_de/big --metrics bleu
#
# Words: models, as for train.sh, then flags of `owf evaluate`; --fp16, of `owf benchmark`:
# --ref A.de B.de scores with references A and B (default: A, as the paper's signature nrefs:1 says).
# Environment: RUN, CHECKPOINT, TEST_SET as for generate.sh; TABLE of the paper (one_wide);
# SPEED, sentences to measure the speed on as well, or all, as the paper does: one at a time, beam 5

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt22_en_de}
TEST_SET=${TEST_SET:-$RUN/raw/test}
split_words "$@"

owf evaluate "${MODELS[@]/%//test.de}" --ref "$TEST_SET.de" --src "$TEST_SET.en" --target-lang de \
  --by-size --metrics bleu chrf "${COMET[@]}" --json "$RUN/scores.json" --overwrite "${SCORING[@]}"
[ -z "${SPEED:-}" ] || owf benchmark "${MODELS[@]/%//${CHECKPOINT:-checkpoint_best.pt}}" --input "$TEST_SET.en" "${TIMING[@]}" \
  --by-size --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-one_wide}" --pair en-de --only-ours \
  --output "$RUN/table.md" --overwrite "${NOTES[@]}"
