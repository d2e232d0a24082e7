#!/usr/bin/env bash
# Fetches Multi30k, English-German: 29,000 captions of pictures to train on, 1,014 to validate, 1,000 to test.
#
#   bash scripts/multi30k/download.sh
#   LOCAL=~/multi30k bash scripts/multi30k/download.sh --limit 2000
#
# Flags go to the `owf pairs` of the training text: --limit N keeps its first N pairs.
# Environment: RUN, the run's folder, where raw/ is written (runs/multi30k); LOCAL, a folder to take
# {train,val,test_2016_flickr}.{en,de} or .gz from, and fetch nothing
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multi30k}
URL=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw
if [ -z "${LOCAL:-}" ]; then
  LOCAL=$RUN/download
  mkdir -p "$LOCAL"
  for file in {train,val,test_2016_flickr}.{en,de}.gz; do
    [ ! -e "$LOCAL/$file" ] || continue
    curl --fail --location --retry 3 --silent --show-error --output "$LOCAL/$file.part" "$URL/$file" ||
      fail "$URL/$file can't be fetched; with LOCAL=DIR nothing is"
    mv "$LOCAL/$file.part" "$LOCAL/$file"
  done
fi
owf pairs --input "$(text "$LOCAL/train.en")" "$(text "$LOCAL/train.de")" --lines 29000 \
  --output "$RUN/raw/train.en" "$RUN/raw/train.de" "$@"
owf pairs --input "$(text "$LOCAL/val.en")" "$(text "$LOCAL/val.de")" --lines 1014 \
  --output "$RUN/raw/valid.en" "$RUN/raw/valid.de"
owf pairs --input "$(text "$LOCAL/test_2016_flickr.en")" "$(text "$LOCAL/test_2016_flickr.de")" --lines 1000 \
  --output "$RUN/raw/test.en" "$RUN/raw/test.de"
