#!/usr/bin/env bash
# Fetches WMT22 English-German: through mtdata the training corpora of WMT's recipe wmt22-deen (296 million pairs);
# through sacreBLEU newstest2020 and newstest2021 to validate, and the general test set of 2022 with references A and B.
#
#   bash scripts/wmt22_en_de/download.sh --without ParaCrawl-paracrawl-9-eng-deu
#   LOCAL=runs/wmt22_en_de/raw RUN=runs/wmt22-small bash scripts/wmt22_en_de/download.sh --limit 1000000
#
# Flags go to the `owf pairs` of the training text: --limit N keeps its first N pairs. --without CORPUS, which may be
# repeated, leaves out one of corpora.tsv, and the tables of results say so: scripts/fetch_corpora.py has the rest.
# Environment: RUN, the run's folder, where raw/ is written (runs/wmt22_en_de); LOCAL, a folder to take
# {train,valid,test}.{en,de} from, and test.refB.de if it is there, or .gz, and fetch nothing; JOBS, files that are
# fetched at a time (4); MTDATA, where it keeps what it fetched (RUN/mtdata-cache)

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt22_en_de}
export MTDATA=${MTDATA:-$RUN/mtdata-cache}

train=() valid=()
if [ -z "${LOCAL:-}" ]; then
  test=$RUN/sacrebleu/test
  # the small ones first: what is missing shows at once
  fetch_test wmt20 en-de src "$RUN/sacrebleu/wmt20.en"
  fetch_test wmt20 en-de ref "$RUN/sacrebleu/wmt20.de"
  fetch_test wmt21 en-de src "$RUN/sacrebleu/wmt21.en"
  fetch_test wmt21 en-de ref:A "$RUN/sacrebleu/wmt21.de"
  fetch_test wmt22 en-de src "$test.en"
  fetch_test wmt22 en-de ref:A "$test.de"
  fetch_test wmt22 en-de ref:B "$test.refB.de"
  train=(python "$ROOT/scripts/fetch_corpora.py" --corpora "$ROOT/scripts/wmt22_en_de/corpora.tsv" --langs eng-deu
    --run "$RUN" --jobs "${JOBS:-4}")
  for name in wmt20 wmt21; do valid+=(--input "$RUN/sacrebleu/$name.en" "$RUN/sacrebleu/$name.de"); done
else
  test=$LOCAL/test
  train=(owf pairs --input "$(text "$LOCAL/train.en")" "$(text "$LOCAL/train.de")")
  mkdir -p "$RUN/raw"
  [ ! -e "$LOCAL/notes.txt" ] || cp "$LOCAL/corpora.json" "$LOCAL/notes.txt" "$RUN/raw"
  valid=(--input "$(text "$LOCAL/valid.en")" "$(text "$LOCAL/valid.de")")
fi

owf pairs "${valid[@]}" --output "$RUN/raw/valid.en" "$RUN/raw/valid.de" --drop-empty
owf pairs --input "$(text "$test.en")" "$(text "$test.de")" --output "$RUN/raw/test.en" "$RUN/raw/test.de"
test_b=$(text "$test.refB.de")
if [ -e "$test_b" ]; then
  owf pairs --input "$(text "$test.en")" "$test_b" --output "$RUN/raw/test.en" "$RUN/raw/test.refB.de"
fi
"${train[@]}" --output "$RUN/raw/train.en" "$RUN/raw/train.de" --drop-empty --max-words 250 "$@"
