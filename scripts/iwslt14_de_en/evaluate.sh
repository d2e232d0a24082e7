#!/usr/bin/env bash
# Scores translations of IWSLT14's test set: BLEU and chrF of the text, beside the paper's, then BLEU of the tokens in
# small letters, which the published figures are; do models differ from the individual model of their size?
#
#   bash scripts/iwslt14_de_en/evaluate.sh iwslt14_de_en/iwslt iwslt14_de_en/iwslt_one_wide_ffn
#
# Words: models, as for train.sh, then flags of `owf evaluate` for the text; --fp16, of `owf benchmark`.
# Environment: RUN as for generate.sh; TABLE of the paper (one_wide); SPEED, sentences to measure the speed on as well, or all
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/iwslt14_de_en}
split_words "$@"
owf evaluate "${MODELS[@]/%//test.en}" --ref "$RUN/raw/test.en" --src "$RUN/raw/test.de" --target-lang en \
  --by-size --metrics bleu chrf --json "$RUN/scores.json" --overwrite "${SCORING[@]}"
python "$ROOT/scripts/iwslt14_de_en/tokens.py" "$RUN/data" --text "$RUN/original/test.en"
owf evaluate "${MODELS[@]/%//test.tok}" --ref "$RUN/original/test.tok" --tokenize none --by-size \
  --metrics bleu --decimals 2 --json "$RUN/tokenized.json" --overwrite
[ -z "${SPEED:-}" ] || owf benchmark "${MODELS[@]/%//averaged.pt}" --input "$RUN/raw/test.de" "${TIMING[@]}" \
  --by-size --json "$RUN/speed.json"
owf report "$RUN/scores.json" ${SPEED:+"$RUN/speed.json"} --table "${TABLE:-one_wide}" --only-ours \
  --output "$RUN/table.md" --overwrite
