#!/usr/bin/env bash
# Fetches WMT22 English-German: through mtdata the training corpora of WMT's recipe wmt22-deen (296 million pairs);
# through sacreBLEU newstest2020 and newstest2021 to validate, and the general test set of 2022 with references A and B.
#
#   bash scripts/wmt22_en_de/download.sh
#   LOCAL=runs/wmt22_en_de/raw RUN=runs/wmt22-small bash scripts/wmt22_en_de/download.sh --limit 1000000
#
# Flags go to the `owf pairs` of the training text: --limit N keeps its first N pairs.
# Environment: RUN, the run's folder, where raw/ is written (runs/wmt22_en_de); LOCAL, a folder to take
# {train,valid,test}.{en,de} from, and test.refB.de if it is there, or .gz, and fetch nothing; JOBS, corpora that mtdata
# fetches at a time (4); MTDATA, where it keeps what it fetched (RUN/mtdata-cache)

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/wmt22_en_de}
export MTDATA=${MTDATA:-$RUN/mtdata-cache}

CORPORA=(
  Statmt-europarl-10-deu-eng ParaCrawl-paracrawl-9-eng-deu Statmt-commoncrawl_wmt13-1-deu-eng
  Statmt-news_commentary-16-deu-eng Statmt-wikititles-3-deu-eng Facebook-wikimatrix-1-deu-eng
  Tilde-eesc-2017-deu-eng Tilde-ema-2016-deu-eng Tilde-airbaltic-1-deu-eng Tilde-czechtourism-1-deu-eng
  Tilde-ecb-2017-deu-eng Tilde-rapid-2016-deu-eng Tilde-rapid-2019-deu-eng
)
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
  # mtdata is not to join them: their order would be another one in every run
  mtdata --no-pbar get --langs eng-deu --train "${CORPORA[@]}" --out "$RUN/mtdata" --n-jobs "${JOBS:-4}" \
    --fail --no-merge --compress
  for name in "${CORPORA[@]}"; do
    train+=(--input "$RUN/mtdata/train-parts/$name.eng.gz" "$RUN/mtdata/train-parts/$name.deu.gz")
  done
  for name in wmt20 wmt21; do valid+=(--input "$RUN/sacrebleu/$name.en" "$RUN/sacrebleu/$name.de"); done
else
  test=$LOCAL/test
  train=(--input "$(text "$LOCAL/train.en")" "$(text "$LOCAL/train.de")")
  valid=(--input "$(text "$LOCAL/valid.en")" "$(text "$LOCAL/valid.de")")
fi

owf pairs "${valid[@]}" --output "$RUN/raw/valid.en" "$RUN/raw/valid.de" --drop-empty
owf pairs --input "$(text "$test.en")" "$(text "$test.de")" --output "$RUN/raw/test.en" "$RUN/raw/test.de"
test_b=$(text "$test.refB.de")
if [ -e "$test_b" ]; then
  owf pairs --input "$(text "$test.en")" "$test_b" --output "$RUN/raw/test.en" "$RUN/raw/test.refB.de"
fi
owf pairs "${train[@]}" --output "$RUN/raw/train.en" "$RUN/raw/train.de" --drop-empty --max-words 250 "$@"
