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
# It can be interrupted and started again with the same flags.
# Environment: PYTHON, the interpreter to install with; OWF_VENV, the virtual environment (default: .venv).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
SMOKE='' LANGS=en-de ARCHS='' LOCAL=${LOCAL:-} OUTPUT=''
limit=() training=() speed=100
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) SMOKE=-smoke && shift && continue ;;
    --langs) LANGS=${2:-} ;;
    --archs) ARCHS=${2:-} ;;
    --local) LOCAL=${2:-} ;;
    --output) OUTPUT=${2:-} ;;
    *) usage_error "unknown argument $1; see --help" ;;
  esac
  [[ ${2:-} == *[![:space:]]* ]] || usage_error "$1 needs a value; see --help"
  shift 2
done
RUN=${OUTPUT:-$ROOT/runs/quickstart$SMOKE-$LANGS${ARCHS:+-${ARCHS// /-}}}
read -r -a archs <<<"${ARCHS:-owf_small owf_small_one_wide_ffn}"
if [ -n "$SMOKE" ]; then
  limit=(--limit 24) speed=2
  training=(--max-update 6 --validate-interval-updates 3 --save-interval-updates 3 --log-interval 2)
fi
SOURCE=${LANGS%%-*} TARGET=${LANGS#*-}
[[ $LANGS != *-en ]] || SOURCE=${LANGS%-en} TARGET=en # either may have a hyphen: zh-Hans
export LOCAL RUN SOURCE TARGET CUDA_VISIBLE_DEVICES='' # all on the CPU
# main: a function, so that the script is read to its end before it runs: it may be changed, by git, while it does.
main() {
  local begun arch shown=() configs=()
  ensure_venv ""
  begun=$SECONDS
  mkdir -p "$RUN/configs"
  for arch in "${archs[@]}"; do
    configs+=("$RUN/configs/$arch.yaml")
    printf "base: '%s/configs/quickstart/_base.yaml'\narch: %s\n" "${ROOT//\'/\'\'}" "$arch" >"$RUN/configs/$arch.yaml"
    case $arch in # it has no encoder, and refuses its flags
      owf_decoder_only*) printf 'encoder-normalize-before: false\n' >>"$RUN/configs/$arch.yaml" ;;
    esac
  done
  owf train "${configs[@]}" --run "$RUN" --source-lang "$SOURCE" --target-lang "$TARGET" --cpu "${training[@]}" \
    --dry-run >/dev/null # what is wrong shows before anything is fetched
  say "text"
  bash "$ROOT/scripts/quickstart/download.sh" "${limit[@]}"
  owf prepare --train "$RUN/raw/train" --valid "$RUN/raw/valid" --test "$RUN/raw/test" --langs "$LANGS" \
    --vocab-size 3000 --output "$RUN/data"
  say "training"
  owf train "${configs[@]}" --run "$RUN" --source-lang "$SOURCE" --target-lang "$TARGET" --cpu "${training[@]}"
  say "translation"
  for arch in "${archs[@]}"; do
    owf translate "$RUN/$arch/checkpoint_best.pt" --input "$RUN/raw/test.$SOURCE" --output "$RUN/$arch/test.$TARGET"
    shown+=("$arch=$RUN/$arch/test.$TARGET")
  done
  say "ten of the test sentences"
  python "$ROOT/scripts/quickstart/show.py" source="$RUN/raw/test.$SOURCE" reference="$RUN/raw/test.$TARGET" "${shown[@]}"
  say "results"
  NOTE="ours: $(wc -l <"$RUN/raw/train.$SOURCE") training pairs, configs/quickstart/_base.yaml ${training[*]}" \
    SPEED=$speed bash "$ROOT/scripts/quickstart/evaluate.sh" "${archs[@]}"
  say "all steps together took $(minutes $((SECONDS - begun))) after the installation; $RUN/table.md"
}
{
  main
  exit
}
