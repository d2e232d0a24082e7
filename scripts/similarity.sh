#!/usr/bin/env bash
# The paper's similarity tables and pictures on a dataset: fetches and prepares the text, trains the models of the
# tables' rows, and the first of them with other seeds too; compares what all of them make of the test set, component by
# component (`owf similarity`), and prints the tables last.
#
# The baseline is the first row's model with the first of --seeds. The same model with the other seeds, and with that of
# the config, is the benchmark. So neither it nor any of the rows began with the weights that the baseline began with:
# models of one seed stay alike by that alone.
#
#   bash scripts/similarity.sh --dataset quickstart --cpu
#   bash scripts/similarity.sh --dataset multi30k --rows "small small_one_wide_ffn" --max-update 1200 --cpu
#   bash scripts/similarity.sh --dataset wmt22_en_de --prepared
#
# --dataset NAME    quickstart, multi30k or wmt22_en_de
# --rows "A B"      configs of the dataset, the baseline's first (default: all that `owf configs --table similarity
#                   --dataset NAME` prints)
# --seeds "2 3"     of the baseline and of the benchmark, other than the configs' (default: "2 3")
# --capture WHAT    sublayer (default) or module: see `owf similarity --help`
# --local DIR       take the text from a folder, and fetch nothing: see scripts/DATASET/download.sh
# --langs LANGS     other languages than the dataset's, where its download.sh has that flag
# --limit N         keep the first N training pairs
# --vocab-size N    of the segmentation that is learnt (default: the dataset's)
# --prepared        the run's folder has its text and data already: download and preprocess nothing
# --sentences N     compare on the first N sentences of the test set (default: all)
# --jobs N          models that are trained at a time: see scripts/reproduce_tables.sh
# --cpu             use no GPU
# --output DIR      the run's folder (default: the dataset's, runs/DATASET); makes similarity-sublayer/ in it, or
#                   similarity-module/
# All other words are fairseq-train's, and go to `owf train`, for every row: --max-update N, ...
#
# It can be interrupted and started again: finished steps are kept, and training goes on from its last checkpoint.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/walk.sh"
DATASET=
ROWS=
SEEDS="2 3"
CAPTURE=sublayer
PREPARED=
parse "--dataset= --rows= --seeds= --capture= --local= --langs= --limit= --vocab-size= --prepared --sentences= --jobs= --cpu" \
  "owf train" "$@"
TRAINING=(${REST[@]+"${REST[@]}"})

# check_seeds: no two trainings of the first row may begin alike, nor any row like the baseline.
check_seeds() {
  local own
  own=$(owf train "$(config_path "${CONFIGS[0]}")" --dry-run ${TRAINING[@]+"${TRAINING[@]}"} ${CPU:+--cpu} |
    sed -n 's/.*--seed \([0-9]*\).*/\1/p')
  if [ -n "$({ printf '%s\n' "$own" && tr ' ' '\n' <<<"$SEEDS"; } | sort | uniq -d)" ]; then
    usage_error "--seeds must differ from each other and from that of the configs, $own, but are $SEEDS"
  fi
}

# add_seeds: a config for each of $SEEDS, the first row's with another seed, to $CONFIGS.
add_seeds() {
  local baseline seed
  baseline=$(config_path "${CONFIGS[0]}")
  case $baseline in
    /*.yaml) ;;
    *.yaml) baseline=$PWD/$baseline ;;
    *) baseline=$ROOT/configs/$baseline.yaml ;;
  esac
  mkdir -p "$OUTPUT/configs"
  for seed in $SEEDS; do
    CONFIGS+=("$OUTPUT/configs/$(config_name "${CONFIGS[0]}")_seed_$seed.yaml")
    printf "# A row of the similarity tables with another seed.\nbase: '%s'\nseed: %s\n" \
      "${baseline//\'/\'\'}" "$seed" >"${CONFIGS[-1]}"
  done
}

# compare ROWS: the first so many of $CONFIGS; the others are the first one with other seeds, the baseline's before all.
compare() {
  local config name command source target data models=()
  if [ -e "$OUTPUT/langs.txt" ]; then
    read -r source target <"$OUTPUT/langs.txt"
  else
    command=$(owf train "$(config_path "${CONFIGS[0]}")" --dry-run ${CPU:+--cpu}) || exit
    source=$(printf '%s\n' "$command" | sed -n 's/.*--source-lang \([^ ]*\).*/\1/p')
    target=$(printf '%s\n' "$command" | sed -n 's/.*--target-lang \([^ ]*\).*/\1/p')
  fi
  for config in "${CONFIGS[@]}"; do
    name=$(config_name "$config")
    models+=("$name=$OUTPUT/$name/$CHECKPOINT")
  done
  data=$(data_folders)
  owf similarity "${models[$1]}" "${models[@]:1:$1-1}" --benchmark "${models[0]}" "${models[@]:$1+1}" --data "${data%%:*}" \
    --src "$OUTPUT/raw/test.$source" --ref "$OUTPUT/raw/test.$target" ${SENTENCES:+--sentences "$SENTENCES"} \
    ${CPU:+--cpu} --capture "$CAPTURE" --output "$OUTPUT/similarity-$CAPTURE"
}

# A function, so that the script is read to its end before it runs: it may be changed, by git, while it does.
main() {
  local seed count
  [ -n "$DATASET" ] || usage_error "name the data, --dataset NAME; see --help"
  [ -n "$ROWS" ] || ROWS=$(owf configs --table similarity --dataset "$DATASET") || exit
  read -r -d '' -a CONFIGS <<<"$ROWS" || true
  count=${#CONFIGS[@]}
  for seed in $SEEDS; do whole_number --seeds "$seed"; done
  case $CAPTURE in
    sublayer | module) ;;
    *) usage_error "--capture must be sublayer or module, but is $CAPTURE" ;;
  esac
  check_training
  check_seeds
  start_clock
  add_seeds
  say "similarity on $DATASET: $count rows, seeds $SEEDS, $OUTPUT"
  [ -n "$PREPARED" ] || prepare_text
  train_all
  compare "$count"
  say "all took $(minutes "$(seconds_spent)"); $OUTPUT/similarity-$CAPTURE"
}

{
  main
  exit
}
