#!/usr/bin/env bash
# Fetches WMT22 English-German: the corpora of the recipe wmt22-deen through mtdata (296 million pairs); through
# sacreBLEU newstest2020 and newstest2021 to validate, and the general test set of 2022 with references A and B.
#
#   bash scripts/wmt22_en_de/download.sh
#   bash scripts/wmt22_en_de/download.sh --local runs/wmt22_en_de/raw --output runs/wmt22-small --limit 1000000
#
# --local DIR   take {train,valid,test}.{en,de}, and test.refB.de if it is there, or .gz, from a folder; fetch nothing
# --limit N     keep the first N training pairs
# --jobs N      corpora that mtdata fetches and unpacks at a time (default: 4)
# --output DIR  the run's folder (default: runs/wmt22_en_de); the text is in raw/ then
#
# Training pairs with an empty side, or with a side of more than 250 words, are left out. Environment: MTDATA, where
# mtdata keeps what it fetched (default: mtdata-cache/ in the run's folder).

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
JOBS=4
parse "--local= --limit= --jobs=" "" "$@"
whole_number --jobs "$JOBS"

CORPORA=$OUTPUT/mtdata
SETS=$OUTPUT/sacrebleu
RECIPES=$ROOT/scripts/wmt22_en_de
CLEANING=(--drop-empty --max-words 250 ${LIMIT:+--limit "$LIMIT"})

# Without --fail-on-error a corpus that can't be had is left out with a line in the log. mtdata is not to join them:
# their order would be another one in every run.
fetch_corpora() {
  export MTDATA_RECIPES=$RECIPES
  mtdata get-recipe --recipe-id wmt22-deen --out "$CORPORA" --n-jobs "$JOBS" --fail-on-error --no-merge --compress
}

# join_corpora: one training text, in the order of the recipe.
join_corpora() {
  local names name inputs=()
  names=$(sed -n 's/^    - //p' "$RECIPES/mtdata.recipes.wmt22.yml")
  for name in $names; do
    inputs+=(--input "$CORPORA/train-parts/$name.eng.gz" "$CORPORA/train-parts/$name.deu.gz")
  done
  owf pairs "${inputs[@]}" --output "$OUTPUT/raw/train.en" "$OUTPUT/raw/train.de" --overwrite "${CLEANING[@]}"
}

join_validation() {
  owf pairs --input "$SETS/wmt20.en" "$SETS/wmt20.de" --input "$SETS/wmt21.en" "$SETS/wmt21.de" \
    --output "$OUTPUT/raw/valid.en" "$OUTPUT/raw/valid.de" --overwrite --drop-empty
}

from_network() {
  # the small ones first: what is missing shows at once
  step fetch-wmt20-source fetch_test wmt20 en de src "$SETS/wmt20.en"
  step fetch-wmt20-reference fetch_test wmt20 en de ref "$SETS/wmt20.de"
  step fetch-wmt21-source fetch_test wmt21 en de src "$SETS/wmt21.en"
  step fetch-wmt21-reference fetch_test wmt21 en de ref:A "$SETS/wmt21.de"
  step fetch-wmt22-source fetch_test wmt22 en de src "$SETS/test.en"
  step fetch-wmt22-reference fetch_test wmt22 en de ref:A "$SETS/test.de"
  step fetch-wmt22-reference-b fetch_test wmt22 en de ref:B "$SETS/test.refB.de"
  step download-valid join_validation
  step download-test copy_pairs "$SETS/test" "$OUTPUT/raw/test" en de --lines 2037
  step download-test-b copy_pairs "$SETS/test" "$OUTPUT/raw/test" en refB.de --lines 2037
  step fetch-corpora fetch_corpora
  step download-train join_corpora
}

from_folder() {
  step download-train copy_pairs "$LOCAL/train" "$OUTPUT/raw/train" en de "${CLEANING[@]}"
  step download-valid copy_pairs "$LOCAL/valid" "$OUTPUT/raw/valid" en de --drop-empty
  step download-test copy_pairs "$LOCAL/test" "$OUTPUT/raw/test" en de
  if [ -e "$LOCAL/test.refB.de" ] || [ -e "$LOCAL/test.refB.de.gz" ]; then
    step download-test-b copy_pairs "$LOCAL/test" "$OUTPUT/raw/test" en refB.de
  fi
}

{
  begun download "local: $LOCAL, limit: $LIMIT"
  if [ -n "$LOCAL" ]; then from_folder; else from_network; fi
  exit
}
