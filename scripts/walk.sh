# Functions that reproduce_tables.sh, similarity.sh and quickstart.sh share, which go all the way from text to a table with
# the scripts of a dataset; to be read by them: . "$(dirname "${BASH_SOURCE[0]}")/walk.sh"
#
# What they read, beside what `parse` of recipe.sh sets: $DATASET, $CONFIGS, $TABLE, $CPU, and
#     LANGS         as the dataset's download.sh takes it         SPEED         as its evaluate.sh takes it
#     VOCAB_SIZE    as `owf prepare` takes it                     SENTENCES     of the test set, from its start
#     JOBS          models that are trained at a time             TRAINING      flags of `owf train`
# shellcheck shell=bash

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/recipe.sh"

LANGS=
VOCAB_SIZE=
SPEED=100
SENTENCES=
JOBS=
TRAINING=()

# of_dataset SCRIPT ARGUMENTS...
of_dataset() { bash "$ROOT/scripts/$DATASET/$1.sh" "${@:2}" --output "$OUTPUT"; }

# has_gpu: whether training finds one. nvidia-smi lists NVIDIA's; torch finds AMD's through /dev/kfd.
has_gpu() {
  [ -z "$CPU" ] && [ -n "${CUDA_VISIBLE_DEVICES-all}" ] || return 1
  [ -e /dev/kfd ] || nvidia-smi --list-gpus 2>/dev/null | grep -q .
}

# check_training: sets $UPDATES and $JOBS. Refuses wrong flags and what can't be trained here, before anything is done.
check_training() {
  local command
  whole_number --jobs "$JOBS"
  whole_number --sentences "$SENTENCES"
  command=$(owf train "$(config_path "${CONFIGS[0]}")" --dry-run ${TRAINING[@]+"${TRAINING[@]}"} ${CPU:+--cpu}) || exit
  UPDATES=$(printf '%s\n' "$command" | grep -o -e '--max-update [0-9]*' | tail -n 1 | tr -dc 0-9) || true
  if has_gpu; then
    JOBS=${JOBS:-1}
  elif [[ $command == *" --fp16"* ]]; then
    usage_error "the configs of $DATASET train in half precision (fp16), which needs a GPU: add --fp32"
  else
    JOBS=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
  fi
}

prepare_text() {
  of_dataset download ${LANGS:+--langs "$LANGS"} ${LOCAL:+--local "$LOCAL"} ${LIMIT:+--limit "$LIMIT"}
  of_dataset preprocess ${VOCAB_SIZE:+--vocab-size "$VOCAB_SIZE"}
}

trainers=()

# start_clock: from here on the seconds count that the script runs, in all calls together; and nothing outlives it.
start_clock() {
  SPENT=$(cat "$STEPS/seconds" 2>/dev/null) || SPENT=0
  BEGUN=$SECONDS
  trap at_exit EXIT
}

seconds_spent() { printf '%d\n' $((SPENT + SECONDS - BEGUN)); }

# Trainers in the background don't get the Ctrl-C that stops the script.
at_exit() {
  local trainer
  for trainer in ${trainers[@]+"${trainers[@]}"}; do
    kill -- "-$trainer" 2>/dev/null || true
  done
  [ ! -d "$STEPS" ] || seconds_spent >"$STEPS/seconds"
}

# train_all: on a CPU, as many models at a time as there are cores, each with one thread. On two cores this is a quarter
# faster than one after the other with two threads each; and threads that wait for each other get several times slower as
# soon as another program runs beside.
train_all() {
  local config running=0
  mkdir -p "$STEPS"
  rm -f "$STEPS/failed"
  [ "$JOBS" -eq 1 ] || export OMP_NUM_THREADS=1
  set -m # each trainer and its children are a group of processes
  for config in "${CONFIGS[@]}"; do
    if [ "$running" -ge "$JOBS" ]; then
      wait -n || true
      running=$((running - 1))
    fi
    train_one "$config" &
    trainers+=($!)
    running=$((running + 1))
  done
  wait
  set +m
  trainers=()
  [ ! -e "$STEPS/failed" ] || fail "training failed for $(xargs <"$STEPS/failed")"
}

# train_one CONFIG
train_one() {
  local name log
  name=$(config_name "$1")
  log=$OUTPUT/$name/train.log
  mkdir -p "$OUTPUT/$name"
  printf '%s: the whole log is %s\n' "$name" "$log"
  if ! of_dataset train "$1" ${TRAINING[@]+"${TRAINING[@]}"} ${CPU:+--cpu} 2>&1 | tee -a "$log" | progress "$name"; then
    tail -n 20 "$log" >&2
    printf '%s\n' "$name" >>"$STEPS/failed"
  fi
}

# progress NAME: one short line for each of fairseq-train's that report losses, and what the scripts say.
progress() {
  sed -u -n -E -e "s/.*\\| train_inner \\|.*nll_loss=([0-9.]+).* wps=([0-9.]+).*num_updates=([0-9]+).*/$1: \\3${UPDATES:+ of $UPDATES} updates, loss \\1 bits a token, \\2 tokens a second/p" \
    -e "s/.*\\| valid on .*\\| nll_loss ([0-9.]+).*num_updates ([0-9]+).*/$1: \\2${UPDATES:+ of $UPDATES} updates, held-out loss \\1/p" \
    -e 's/^== (train-.*:)/\1/p'
}

translate_all() { of_dataset generate "${CONFIGS[@]}" ${SENTENCES:+--limit "$SENTENCES"} ${CPU:+--cpu}; }

# make_table: scores, speed, and the paper's table $TABLE with ours beside and the budget below, which is printed last.
make_table() {
  of_dataset evaluate "${CONFIGS[@]}" --table "$TABLE" --speed "$SPEED" ${SENTENCES:+--limit "$SENTENCES"} ${CPU:+--cpu}
  budget | tee -a "$OUTPUT/table.md"
}

# budget: what ours were made with, as a line of the table's notes.
budget() {
  local given=() pairs
  given+=(${LIMIT:+--limit "$LIMIT"} ${SENTENCES:+--sentences "$SENTENCES"} ${VOCAB_SIZE:+--vocab-size "$VOCAB_SIZE"})
  given+=(${TRAINING[@]+"${TRAINING[@]}"})
  pairs=$(($(cat "$OUTPUT"/raw/train.* | wc -l) / 2))
  printf -- '- ours: %d training pairs, %s updates of the training recipe of configs/%s%s\n' "$pairs" "${UPDATES:-no limit of}" \
    "$DATASET" "${given[*]:+, with ${given[*]}}"
}
