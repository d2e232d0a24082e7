#!/usr/bin/env bash
# Fetches WMT16 English-Romanian: Europarl v8 and SETIMES2 to train on through mtdata (610 thousand pairs), newsdev2016
# to validate and newstest2016 to test through sacreBLEU. Romanian is normalised: ş and ţ with a cedilla become ș and ț
# with a comma below, as the language is written; all diacritics stay.
#
#   bash scripts/wmt16_en_ro/download.sh
#   bash scripts/wmt16_en_ro/download.sh --local ~/en-ro --limit 50000
#
# --local DIR   take {train,valid,test}.{en,ro} or .gz from a folder, and fetch nothing
# --limit N     keep the first N training pairs
# --output DIR  the run's folder (default: runs/wmt16_en_ro); the text is in raw/ then, and as it was in original/
#
# Training pairs with an empty side, or with a side of more than 250 words, are left out. Environment: MTDATA, where
# mtdata keeps what it fetched (default: mtdata-cache/ in the run's folder).

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "--local= --limit=" "" "$@"

CORPORA=(OPUS-europarl-v8-eng-ron OPUS-setimes-v2-eng-ron)
CLEANING=(--drop-empty --max-words 250 ${LIMIT:+--limit "$LIMIT"})

# commas_below: Romanian as it should be. Bytes, so that it is the same in every locale; a letter with a cedilla is one
# character, or the letter and U+0327.
commas_below() {
  local cedilla
  cedilla=$(printf '\314\247')
  LC_ALL=C sed -e 's/Ş/Ș/g' -e 's/ş/ș/g' -e 's/Ţ/Ț/g' -e 's/ţ/ț/g' \
    -e "s/S$cedilla/Ș/g" -e "s/s$cedilla/ș/g" -e "s/T$cedilla/Ț/g" -e "s/t$cedilla/ț/g"
}

# normalise SPLIT: OUTPUT/original to OUTPUT/raw.
normalise() {
  local from=$OUTPUT/original/$1 to=$OUTPUT/raw/$1
  mkdir -p "$OUTPUT/raw"
  commas_below <"$from.ro" >"$to.ro.part"
  cp "$from.en" "$to.en.part"
  mv "$to.ro.part" "$to.ro"
  mv "$to.en.part" "$to.en"
}

# take SPLIT FROM FLAGS...: the pairs FROM.en and FROM.ro.
take() {
  copy_pairs "$2" "$OUTPUT/original/$1" en ro "${@:3}"
  normalise "$1"
}

fetch_corpora() {
  mtdata get --langs eng-ron --train "${CORPORA[@]}" --out "$OUTPUT/mtdata" --fail --no-merge --compress
}

join_corpora() {
  local name inputs=()
  for name in "${CORPORA[@]}"; do
    inputs+=(--input "$OUTPUT/mtdata/train-parts/$name.eng.gz" "$OUTPUT/mtdata/train-parts/$name.ron.gz")
  done
  owf pairs "${inputs[@]}" --output "$OUTPUT/original/train.en" "$OUTPUT/original/train.ro" --overwrite "${CLEANING[@]}"
  normalise train
}

from_network() {
  local split set sets=$OUTPUT/sacrebleu
  # the small ones first: what is missing shows at once
  for split in valid=wmt16/dev test=wmt16; do
    set=${split#*=} split=${split%=*}
    step "fetch-$split-source" fetch_test "$set" en ro src "$sets/$split.en"
    step "fetch-$split-reference" fetch_test "$set" en ro ref "$sets/$split.ro"
    step "download-$split" take "$split" "$sets/$split"
  done
  step fetch-corpora fetch_corpora
  step download-train join_corpora
}

{
  begun download "local: $LOCAL, limit: $LIMIT"
  if [ -z "$LOCAL" ]; then
    from_network
  else
    step download-train take train "$LOCAL/train" "${CLEANING[@]}"
    step download-valid take valid "$LOCAL/valid"
    step download-test take test "$LOCAL/test"
  fi
  exit
}
