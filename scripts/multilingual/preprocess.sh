#!/usr/bin/env bash
# Prepares the text of all pairs of languages for fairseq: one SentencePiece vocabulary of 250,000 pieces, learnt from as
# much text in each language, and binary data of all pairs in one folder, as translation_multi_simple_epoch reads them.
#
#   bash scripts/multilingual/preprocess.sh
#   bash scripts/multilingual/preprocess.sh --vocab-size 240004 --shards 16
#
# --sample N    lines of each language that are drawn for the vocabulary to be learnt from (default: 300000)
# --shards N    parts that each pair's training data are cut into; training holds one of them at a time (default: 16)
# --workers N   processes (default: as many as there are cores)
# --output DIR  the run's folder (default: runs/multilingual); reads its raw/, makes its data/
# All other words go to `owf prepare` where it makes the vocabulary: --vocab-size N, --character-coverage X.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/languages.sh"
SAMPLE=300000
SHARDS=16
parse "--sample= --shards= --workers=" "owf prepare" "$@"
whole_number --sample "$SAMPLE"

# sample LANG: so many lines, evenly drawn from all text in a language. A line that is drawn already, because it is in the
# text of several pairs, is passed over for the next one.
sample() {
  local files=("$OUTPUT"/raw/train.*."$1") lines to=$OUTPUT/sample/$1.txt
  mkdir -p "$OUTPUT/sample"
  lines=$(cat "${files[@]}" | wc -l)
  cat "${files[@]}" | LC_ALL=C awk -v wanted="$SAMPLE" -v lines="$lines" \
    'drawn < wanted && drawn <= int((NR - 1) * wanted / lines) && !($0 in seen) { seen[$0]; drawn++; print }' >"$to.part"
  mv "$to.part" "$to"
}

# prepare_pair A B FLAGS...
prepare_pair() {
  local source=$1 target=$2
  shift 2
  owf prepare --train "$OUTPUT/raw/train.$source-$target" --valid "$OUTPUT/raw/valid" --test "$OUTPUT/raw/test" \
    --langs "$source-$target" --output "$OUTPUT/pairs/$source-$target" --shards "$SHARDS" \
    ${WORKERS:+--workers "$WORKERS"} "$@"
}

# join_pairs: the binary data of all pairs in OUTPUT/data, or in its shards; linked, so that they take no room.
join_pairs() {
  local folder from file to=$OUTPUT/data.part
  rm -rf "$to"
  for from in "$OUTPUT"/pairs/*; do
    for folder in "$from" "$from"/shard-*; do
      for file in "$folder"/*; do
        [ -f "$file" ] || continue
        mkdir -p "$to${folder#"$from"}"
        ln -f "$file" "$to${folder#"$from"}/" 2>/dev/null || cp "$file" "$to${folder#"$from"}/"
      done
    done
  done
  rm -rf "$OUTPUT/data"
  mv "$to" "$OUTPUT/data"
}

{
  read_languages
  list_pairs
  for pair in "${pairs[@]}"; do needs "$OUTPUT/raw/train.$pair.${pair#*-}" download.sh; done
  begun preprocess "sample: $SAMPLE, shards: $SHARDS, ${REST[*]-}"
  for language in "${languages[@]}"; do
    step "preprocess-sample-$language" sample "$language"
  done
  for pair in "${pairs[@]}"; do
    vocabulary=(--like "$OUTPUT/pairs/${pairs[0]}")
    if [ "$pair" = "${pairs[0]}" ]; then
      vocabulary=(--segmentation-text "$OUTPUT"/sample/*.txt --vocab-size 250000 --character-coverage 0.9995)
      vocabulary+=(${REST[@]+"${REST[@]}"})
    fi
    step "preprocess-$pair" prepare_pair "${pair%-*}" "${pair#*-}" "${vocabulary[@]}"
  done
  step preprocess-join join_pairs
  exit
}
