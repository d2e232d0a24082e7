#!/usr/bin/env bash
# Fetches WMT16 English-Romanian: Europarl v8 and SETIMES2 to train on through mtdata (610 thousand pairs), newsdev2016
# to validate and newstest2016 to test through sacreBLEU. Romanian is normalised: ş and ţ with a cedilla become ș and ț
# with a comma below, as the language is written; all diacritics stay.
#
#   bash scripts/wmt16_en_ro/download.sh
#   LOCAL=~/en-ro bash scripts/wmt16_en_ro/download.sh --limit 50000
#
# Flags go to the `owf pairs` of the training text: --limit N keeps its first N pairs. --without CORPUS leaves out one of
# corpora.tsv, and the tables of results say so: scripts/fetch_corpora.py has the rest.
# Environment: RUN, the run's folder, where raw/ is written, and the text as it was, original/ (runs/wmt16_en_ro); LOCAL,
# a folder to take {train,valid,test}.{en,ro} or .gz from, and fetch nothing; MTDATA, where mtdata keeps what it fetched
# (RUN/mtdata-cache)

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt16_en_ro}
export MTDATA=${MTDATA:-$RUN/mtdata-cache}

train=() sets=${LOCAL:-$RUN/sacrebleu}
if [ -z "${LOCAL:-}" ]; then
  fetch_test wmt16/dev en-ro src "$sets/valid.en"
  fetch_test wmt16/dev en-ro ref "$sets/valid.ro"
  fetch_test wmt16 en-ro src "$sets/test.en"
  fetch_test wmt16 en-ro ref "$sets/test.ro"
  train=(python "$ROOT/scripts/fetch_corpora.py" --corpora "$ROOT/scripts/wmt16_en_ro/corpora.tsv" --langs eng-ron
    --run "$RUN")
else
  train=(owf pairs --input "$(text "$LOCAL/train.en")" "$(text "$LOCAL/train.ro")")
fi

mkdir -p "$RUN/raw"
original=$RUN/original
for split in valid test; do
  owf pairs --input "$(text "$sets/$split.en")" "$(text "$sets/$split.ro")" \
    --output "$original/$split.en" "$original/$split.ro"
done
"${train[@]}" --output "$original/train.en" "$original/train.ro" --drop-empty --max-words 250 "$@"
for split in valid test train; do
  cp -p "$original/$split.en" "$RUN/raw/$split.en"
  python "$ROOT/scripts/wmt16_en_ro/commas_below.py" "$original/$split.ro" "$RUN/raw/$split.ro"
done
