#!/usr/bin/env bash
# Prepares the text of all pairs of languages for fairseq: one SentencePiece vocabulary of 250,000 pieces, learnt from as
# much text in each language, and binary data of all pairs in one folder, as translation_multi_simple_epoch reads them.
#
#   SHARDS=32 bash scripts/multilingual/preprocess.sh --vocab-size 240004
#
# Words: flags of `owf prepare` where it makes the vocabulary, which win over those below.
# Environment: RUN, the run's folder with raw/, where data/ is made (runs/multilingual); SAMPLE, lines of each language
# that are drawn for the vocabulary (300000); SHARDS, parts of each pair's training data, of which training holds one at
# a time (16); WORKERS, processes (as many as there are cores)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multilingual}
[ -e "$RUN/pairs.txt" ] || usage_error "$RUN/pairs.txt is not there: run scripts/multilingual/download.sh first"
mapfile -t pairs <"$RUN/pairs.txt"
first=${pairs[0]}
common=(--valid "$RUN/raw/valid" --test "$RUN/test/test" --shards "${SHARDS:-16}" ${WORKERS:+--workers "$WORKERS"})
python "$ROOT/scripts/multilingual/sample.py" --raw "$RUN/raw" --output "$RUN/sample" --lines "${SAMPLE:-300000}"
owf prepare --train "$RUN/raw/train.$first" --langs "$first" --segmentation-text "$RUN"/sample/*.txt \
  --vocab-size 250000 --character-coverage 0.9995 --output "$RUN/pairs/$first" "${common[@]}" "$@"
for pair in "${pairs[@]:1}"; do
  owf prepare --train "$RUN/raw/train.$pair" --langs "$pair" --like "$RUN/pairs/$first" \
    --output "$RUN/pairs/$pair" "${common[@]}"
done
python "$ROOT/scripts/multilingual/join.py" "$RUN/pairs" "$RUN/data"
