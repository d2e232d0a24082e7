#!/usr/bin/env bash
# Fetches text in ten languages: for each of their 45 pairs the corpora in corpora.tsv to train on, and FLORES-200, which
# says the same in all languages, to validate (dev) and to test (devtest); all of it through mtdata.
#
#   bash scripts/multilingual/download.sh --limit 5000000
#   LANGUAGES="de en fr" LOCAL=~/text bash scripts/multilingual/download.sh
#
# Flags go to scripts/multilingual/download.py: --limit N keeps the first N training pairs of each two languages, and
# --without CORPUS, which may be repeated, leaves out corpora of corpora.tsv ('OPUS-ccmatrix-*'); the tables say so.
# Environment: RUN, the run's folder, where raw/ and test/ are written (runs/multilingual); LANGUAGES, the languages, which
# the other scripts take from here ("de en es fr it ja ko pt sw zh"); LOCAL, a folder to take the text from, and fetch
# nothing: see download.py --help; MTDATA, where mtdata keeps what it fetched (RUN/mtdata-cache)

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

python "$ROOT/scripts/multilingual/download.py" --run "${RUN:-$ROOT/runs/multilingual}" \
  --langs "${LANGUAGES:-de en es fr it ja ko pt sw zh}" ${LOCAL:+--local "$LOCAL"} "$@"
