#!/usr/bin/env bash
# Translates FLORES' test set in all directions with trained models. Started again, it goes on with the directions that
# are not there yet.
#
#   bash scripts/multilingual/generate.sh big big_one_wide_ffn --fp16
#   bash scripts/multilingual/generate.sh big --limit 100 --directions de-en en-de
#
# CONFIG ...         as in train.sh
# --checkpoint NAME  of the CONFIG's folder (default: checkpoint_best.pt)
# --limit N          translate the first N sentences
# --output DIR       the run's folder (default: runs/multilingual); makes test/test.A-B.B in the folder of each CONFIG
# All other words go to `owf multilingual translate`.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/languages.sh"
parse "CONFIG --checkpoint= --limit=" "owf multilingual translate" "$@"

{
  read_languages
  for language in "${languages[@]}"; do
    needs "$OUTPUT/raw/test.$language" download.sh
    input=$(dirname "$(first_lines "$OUTPUT/raw/test.$language")")
  done
  data=$(data_folders)
  settings="$CHECKPOINT $input ${REST[*]-}"
  for config in "${CONFIGS[@]}"; do
    name=$(config_name "$config")
    checkpoint=$OUTPUT/$name/$CHECKPOINT
    folder=$OUTPUT/$name/test
    needs "$checkpoint" "train.sh $name"
    # translations of another checkpoint must not stay
    if [ "$(cat "$folder/.settings" 2>/dev/null)" != "$settings" ] || [ "$checkpoint" -nt "$folder/.settings" ]; then
      rm -rf "$folder"
      mkdir -p "$folder"
      printf '%s\n' "$settings" >"$folder/.settings"
    fi
    step_on "$settings" "$folder/.settings" "translate-$name" \
      owf multilingual translate "$checkpoint" --data "${data%%:*}" --input "$input" --output "$folder" \
      ${REST[@]+"${REST[@]}"}
  done
  exit
}
