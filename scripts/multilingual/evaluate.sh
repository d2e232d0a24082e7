#!/usr/bin/env bash
# Scores translations of FLORES' test set: spBLEU, chrF, COMET if it is installed, of each direction and of all together,
# and whether models differ from the first; prints them beside the paper's. With --speed, it also measures how fast the
# models translate, as the paper does: one sentence at a time, beam 5, five runs.
#
#   bash scripts/multilingual/evaluate.sh big big_one_wide_ffn --speed de-en
#   bash scripts/multilingual/evaluate.sh big --metrics spbleu --limit 100
#
# CONFIG ...         as in train.sh; the others are compared with the first
# --speed A-B        measure the speed on the test set of a direction; the paper's is de-en
# --checkpoint NAME  whose speed is measured, of the CONFIG's folder (default: checkpoint_best.pt)
# --table NAME       of the paper, whose rows stand beside (default: other; see `owf report --help`)
# --limit N          as in generate.sh
# --cpu              use no GPU, for COMET and the speed
# --output DIR       the run's folder (default: runs/multilingual); makes scores.json, speed.json and table.md
# All other words go to `owf evaluate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/languages.sh"
METRICS=(spbleu chrf)
TABLE=other
SPEED=
parse "CONFIG --speed= --checkpoint= --table= --limit= --cpu" "owf evaluate" "$@"

# references: a folder of its own with the test set in all languages.
references() {
  local language to=$OUTPUT/references
  rm -rf "$to"
  mkdir -p "$to"
  for language in "${languages[@]}"; do
    cp "$(first_lines "$OUTPUT/raw/test.$language")" "$to/test.$language"
  done
}

{
  read_languages
  systems=()
  models=()
  for config in "${CONFIGS[@]}"; do
    name=$(config_name "$config")
    needs "$OUTPUT/$name/test" "generate.sh $name"
    systems+=("$name=$OUTPUT/$name/test")
    models+=("$name=$OUTPUT/$name/$CHECKPOINT")
  done
  add_comet
  references
  owf evaluate --directions "${systems[@]}" --ref "$OUTPUT/references" --src "$OUTPUT/references" \
    --baseline "$(config_name "${CONFIGS[0]}")" --metrics "${METRICS[@]}" --json "$OUTPUT/scores.json" --overwrite \
    ${CPU:+--cpu} ${REST[@]+"${REST[@]}"}
  results=("$OUTPUT/scores.json")
  if [ -n "$SPEED" ]; then
    data=$(data_folders)
    owf multilingual benchmark "${models[@]}" --data "${data%%:*}" --direction "$SPEED" \
      --input "$OUTPUT/references/test.${SPEED%-*}" ${CPU:+--cpu} --json "$OUTPUT/speed.json" \
      --overwrite
    results+=("$OUTPUT/speed.json")
  fi
  owf report "${results[@]}" --table "$TABLE" --pair multi --only-ours --output "$OUTPUT/table.md" --overwrite
  exit
}
