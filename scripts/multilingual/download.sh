#!/usr/bin/env bash
# Fetches text in ten languages: for each of their 45 pairs the corpora in corpora.tsv to train on, and FLORES-200, which
# says the same in all languages, to validate (dev) and to test (devtest); all of it through mtdata.
#
#   bash scripts/multilingual/download.sh --limit 5000000
#   bash scripts/multilingual/download.sh --langs "de en fr" --local ~/text
#
# --langs "A B ..."  the languages (default: "de en es fr it ja ko pt sw zh"); the other scripts take them from here
# --local DIR        take train.A-B.{A,B} for each pair of languages, or, where they all say the same, train.{A,B,...};
#                    and {valid,test}.{A,B,...}; or .gz; from a folder, and fetch nothing
# --limit N          keep the first N training pairs of each pair of languages
# --jobs N           pairs of languages that are fetched at a time (default: 4)
# --pair A-B         fetch the training text of this pair of languages only
# --output DIR       the run's folder (default: runs/multilingual); the text is in raw/ then
#
# Training pairs with an empty side, or with a side of more than 250 words, are left out. Environment: MTDATA, where
# mtdata keeps what it fetched (default: mtdata-cache/ in the run's folder).

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/languages.sh"
LANGS="de en es fr it ja ko pt sw zh"
JOBS=4
PAIR=
parse "--langs= --local= --limit= --jobs= --pair=" "" "$@"
whole_number --jobs "$JOBS"

CORPORA=$ROOT/scripts/multilingual/corpora.tsv
CLEANING=(--drop-empty --max-words 250 ${LIMIT:+--limit "$LIMIT"})

# rows SPLIT A B: the names of the corpora of a pair.
rows() { awk -F '\t' -v split_="$1" -v a="$2" -v b="$3" '$1 == split_ && $2 == a && $3 == b { print $4 }' "$CORPORA"; }

# codes NAME: the two languages in the name of a corpus, as mtdata spells them.
codes() { printf '%s\n' "$1" | awk -F - '{ print $(NF - 1), $NF }'; }

# get A B SPLIT NAMES...: corpora of a pair.
get() {
  local languages
  languages=$(codes "$4")
  mtdata get --langs "${languages/ /-}" "--$3" "${@:4}" --out "$OUTPUT/mtdata/$1-$2" --fail --no-merge --compress
}

fetch_pair() {
  local names
  read -r -a names <<<"$(rows train "$1" "$2" | xargs)"
  get "$1" "$2" train "${names[@]}"
}

# join_files PREFIX A B NAMES... -- FOLDER SUFFIX FLAGS...: corpora that mtdata wrote to OUTPUT/mtdata/A-B/FOLDER.
join_files() {
  local to=$OUTPUT/raw/$1 source=$2 target=$3 names=() inputs=() name from languages
  shift 3
  while [ "$1" != -- ]; do
    names+=("$1")
    shift
  done
  for name in "${names[@]}"; do
    from=$OUTPUT/mtdata/$source-$target/$2/$name
    languages=$(codes "$name")
    inputs+=(--input "$from.${languages% *}$3" "$from.${languages#* }$3")
  done
  owf pairs "${inputs[@]}" --output "$to.$source" "$to.$target" --overwrite "${@:4}"
}

join_pair() {
  local names
  read -r -a names <<<"$(rows train "$1" "$2" | xargs)"
  join_files "train.$1-$2" "$1" "$2" "${names[@]}" -- train-parts .gz "${CLEANING[@]}"
}

# held_out SPLIT MTDATA-SPLIT LINES A B: a pair of FLORES; the common language is written with every pair.
held_out() {
  local name
  name=$(rows "$1" "$4" "$5")
  get "$4" "$5" "$2" "$name"
  join_files "$1" "$4" "$5" "$name" -- tests "" --lines "$3"
}

pair_from_network() {
  step "fetch-$1-$2" fetch_pair "$1" "$2"
  step "download-$1-$2" join_pair "$1" "$2"
}

from_network() {
  local source target
  # the small ones first: what is missing shows at once
  while read -r _ source target _; do
    if [[ " ${languages[*]} " == *" ${source/#en/$target} "* ]]; then
      step "download-valid-$source-$target" held_out valid dev 997 "$source" "$target"
      step "download-test-$source-$target" held_out test test 1012 "$source" "$target"
    fi
  done < <(grep '^test' "$CORPORA")
  printf '%s\n' "${pairs[@]}" | xargs -n 1 -P "$JOBS" \
    bash "$0" --output "$OUTPUT" --langs "$LANGS" ${LIMIT:+--limit "$LIMIT"} --pair ||
    fail "some pairs of languages are not complete (see above); started again, the script goes on with them"
}

# local_train A B: where the folder has the training text of a pair.
local_train() {
  local prefix
  for prefix in "train.$1-$2" "train.$2-$1" train; do
    if [ -e "$LOCAL/$prefix.$1" ] || [ -e "$LOCAL/$prefix.$1.gz" ]; then
      printf '%s\n' "$LOCAL/$prefix"
      return
    fi
  done
  usage_error "--local $LOCAL has neither train.$1-$2.$1 nor train.$1"
}

from_folder() {
  local pair target split from
  for split in valid test; do
    for target in "${languages[@]:1}"; do
      step "download-$split-$target" copy_pairs "$LOCAL/$split" "$OUTPUT/raw/$split" "${languages[0]}" "$target"
    done
  done
  for pair in "${pairs[@]}"; do
    from=$(local_train "${pair%-*}" "${pair#*-}") || exit
    step "download-$pair" copy_pairs "$from" "$OUTPUT/raw/train.$pair" "${pair%-*}" "${pair#*-}" "${CLEANING[@]}"
  done
}

# In order, which is that of their tags.
read -r -a languages <<<"$(printf '%s' "$LANGS" | tr ' ' '\n' | LC_ALL=C sort -u | xargs)"
list_pairs

{
  [ ${#pairs[@]} -gt 0 ] || usage_error "--langs must name two languages at least, but is $LANGS"
  for language in "${languages[@]}"; do
    [[ $language =~ ^[A-Za-z_]+$ ]] || usage_error "--langs: fairseq needs languages of letters and _, but one is $language"
    if [ -z "$LOCAL" ] && ! cut -f 2,3 "$CORPORA" | tr '\t' '\n' | grep -qx -e "$language"; then
      usage_error "--langs: corpora.tsv has no text in $language; with --local DIR, you give the text"
    fi
  done
  begun download "langs: ${languages[*]}, local: $LOCAL, limit: $LIMIT"
  printf '%s\n' "${languages[*]}" >"$OUTPUT/langs.txt"
  if [ -n "$LOCAL" ]; then
    from_folder
  elif [ -n "$PAIR" ]; then
    pair_from_network "${PAIR%-*}" "${PAIR#*-}"
  else
    from_network
  fi
  exit
}
