#!/usr/bin/env bash
# Fetches Multi30k, English-German: 29,000 captions of pictures to train on, 1,014 to validate, 1,000 to test.
#
#   bash scripts/multi30k/download.sh
#   bash scripts/multi30k/download.sh --local ~/multi30k --limit 2000
#
# --local DIR   take {train,val,test_2016_flickr}.{en,de} or .gz from a folder, and fetch nothing
# --limit N     keep the first N training pairs
# --output DIR  the run's folder (default: runs/multi30k); the text is in raw/ then

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
parse "--local= --limit=" "" "$@"

URL=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw

# take SPLIT NAME PAIRS FLAGS...
take() {
  local language from=${LOCAL:-$OUTPUT/download}
  if [ -z "$LOCAL" ]; then
    for language in en de; do fetch "$URL/$2.$language.gz" "$from/$2.$language.gz"; done
  fi
  copy_pairs "$from/$2" "$OUTPUT/raw/$1" en de --lines "$3" "${@:4}"
}

{
  begun download "local: $LOCAL, limit: $LIMIT"
  step download-train take train train 29000 ${LIMIT:+--limit "$LIMIT"}
  step download-valid take valid val 1014
  step download-test take test test_2016_flickr 1000
  exit
}
