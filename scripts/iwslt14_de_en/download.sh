#!/usr/bin/env bash
# Fetches IWSLT14 German-English, talks, and cleans and divides it as fairseq does: 160 thousand pairs to train on.
#
#   LOCAL=~/iwslt14/de-en bash scripts/iwslt14_de_en/download.sh --cased
#
# Flags go to scripts/iwslt14_de_en/text.py: --cased keeps capitals, --limit N reads the first N training pairs.
# Environment: RUN, the run's folder, where raw/ is written (runs/iwslt14_de_en); LOCAL, a folder with the archive's files
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
python "$ROOT/scripts/iwslt14_de_en/text.py" --run "${RUN:-$ROOT/runs/iwslt14_de_en}" ${LOCAL:+--local "$LOCAL"} "$@"
