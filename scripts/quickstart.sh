#!/usr/bin/env bash
# Trains and compares small translation models on real text: installs, fetches a corpus, prepares it, trains on the CPU,
# translates the held-out test set, scores the translations, measures how fast the models decode, and prints a table
# beside the paper's (in the output folder: test.TARGET in each model's folder, scores.json, speed.json, table.md). The
# training recipe is configs/quickstart/_base.yaml.
#
#   bash scripts/quickstart.sh
#   bash scripts/quickstart.sh --langs en-ro --archs "owf_small owf_small_no_dec"
#
# --smoke          the same end to end with few sentences and few updates, to see that everything runs
# --langs SRC-TGT  another pair of languages that the corpus has (default: en-de)
# --archs "A B"    the models to compare; speeds are relative to the first (default: "owf_small owf_small_one_wide_ffn")
# --local DIR      take the corpus from a folder: see scripts/quickstart/download.sh
# --output DIR     folder of this run (default: runs/quickstart[-smoke]-SRC-TGT[-ARCHS])
#
# It can be interrupted and started again: finished steps are kept, and training goes on from its last checkpoint.
# Environment: PYTHON, the interpreter to install with; OWF_VENV, the virtual environment (default: .venv).

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/walk.sh"

DEFAULT_ARCHS="owf_small owf_small_one_wide_ffn"
DATASET=quickstart
LANGS=en-de
ARCHS=$DEFAULT_ARCHS
SMOKE=
CPU=yes

# default_output: as recipe.sh asks for it, when all flags are read.
default_output() {
  local output=$ROOT/runs/quickstart${SMOKE:+-smoke}-$LANGS
  [ "$ARCHS" = "$DEFAULT_ARCHS" ] || output=$output-${ARCHS// /-}
  printf '%s\n' "$output"
}

parse "--smoke --langs= --archs= --local=" "" "$@"
read -r -a arch_list <<<"$ARCHS"
[ ${#arch_list[@]} -gt 0 ] || usage_error "--archs names no architecture"
repeated=$(printf '%s\n' "${arch_list[@]}" | sort | uniq -d)
[ -z "$repeated" ] || usage_error "--archs names $repeated more than once"
if [ -n "$SMOKE" ]; then
  LIMIT=24
  SPEED=2
  TRAINING=(--max-update 6 --validate-interval-updates 3 --save-interval-updates 3 --log-interval 2)
fi

# check_archs: all are there.
check_archs() {
  local known arch
  known=$(owf params --list --json)
  for arch in "${arch_list[@]}"; do
    case $known in
      *"\"arch\": \"$arch\""*) ;;
      *) usage_error "--archs: there is no $arch; $VENV/bin/owf params --list shows all" ;;
    esac
  done
}

# make_configs: one for each architecture.
make_configs() {
  local arch
  mkdir -p "$OUTPUT/configs"
  for arch in "${arch_list[@]}"; do
    CONFIGS+=("$OUTPUT/configs/$arch.yaml")
    {
      printf "# The quickstart's training of an architecture.\nbase: '%s'\narch: %s\n" \
        "${ROOT//\'/\'\'}/configs/quickstart/_base.yaml" "$arch"
      case $arch in
        owf_decoder_only*) printf '# it has none, and refuses its flags\nencoder-normalize-before: false\n' ;;
      esac
    } >"$OUTPUT/configs/$arch.yaml"
  done
}

# samples: the first test sentences with all translations.
samples() {
  local line arch source target
  read -r source target <"$OUTPUT/langs.txt"
  for line in 1 2 3 4 5 6 7 8 9 10; do
    printf '\n'
    printf '%-24s %s\n' source "$(sed -n "${line}p" "$OUTPUT/raw/test.$source")" \
      reference "$(sed -n "${line}p" "$OUTPUT/raw/test.$target")"
    for arch in "${arch_list[@]}"; do
      printf '%-24s %s\n' "$arch" "$(sed -n "${line}p" "$OUTPUT/$arch/test.$target")"
    done
  done
}

# A function, so that the script is read to its end before it runs: it may be changed, by git, while it does.
main() {
  ensure_venv
  check_archs
  same_settings "$OUTPUT/settings.txt" "$(printf '%s\n' "langs: $LANGS" "archs: ${arch_list[*]}" "limit: $LIMIT" \
    "training: ${TRAINING[*]-}")"
  make_configs
  check_training
  start_clock
  prepare_text
  train_all
  translate_all
  say "ten of the test sentences"
  samples
  say "results"
  make_table
  say "all steps together took $(minutes "$(seconds_spent)") after the installation ($(minutes "$(sed -n 2p "$VENV/.installed")")); $OUTPUT/table.md"
}

{
  main
  exit
}
