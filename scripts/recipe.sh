# Functions that the scripts of all datasets share; to be read by them: . "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"
#
# The way of the data:
#     OUTPUT/raw/{train,valid,test}.LANG   download.sh     text: line n of one file translates line n of the other
#     OUTPUT/data                          preprocess.sh   fairseq's binary data, or its shards: data/shard-00, ...
#     OUTPUT/NAME/checkpoint_*.pt          train.sh        NAME: a config's file name without .yaml
#     OUTPUT/NAME/test.LANG                generate.sh
#     OUTPUT/scores.json, OUTPUT/table.md  evaluate.sh, and with its --speed OUTPUT/speed.json
#
# Programs (owf, sacrebleu, ...) are those of $OWF_VENV/bin or .venv/bin in the checkout, else those on the PATH.
# shellcheck shell=bash
# shellcheck disable=SC2034  # what is set here, the scripts use

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

DATASET=$(basename "$(cd "$(dirname "$0")" && pwd)") # the folder of the script, and of its configs
OUTPUT=
LIMIT=
LOCAL=
CONFIGS=()
REST=()

# default_output: the folder where the dataset's configs have their data.
default_output() {
  local folder
  folder=$(sed -n 's|^data: \(.*\)/data$|\1|p' "$ROOT/configs/$DATASET/_base.yaml" 2>/dev/null) || true
  printf '%s\n' "$ROOT/${folder:-runs/$DATASET}"
}

# whole_number FLAG VALUE: refuses what is none; no value is fine.
whole_number() {
  case $2 in
    '') ;;
    0* | *[!0-9]*) usage_error "$1 must be a whole number above 0, but is $2" ;;
  esac
}

# parse FLAGS COMMAND "$@": reads the command line of the script.
#   FLAGS    the script's own, with spaces between: --limit= takes a value and sets $LIMIT; --both-references is a
#            switch and sets $BOTH_REFERENCES to yes; CONFIG: words before all foreign flags go to $CONFIGS
#   COMMAND  what the script wraps, and what all other words are for: they go to $REST. If it is empty, they are refused
# --output= and --help need not be listed. Sets $OUTPUT (absolute) and $STEPS.
parse() {
  local flags=" --output= $1 " command=$2 foreign='' name
  shift 2
  while [ $# -gt 0 ]; do
    if [[ $1 == --*=* && $flags == *" ${1%%=*}= "* ]]; then
      set -- "${1%%=*}" "${1#*=}" "${@:2}"
    fi
    name=$(printf '%s' "${1#--}" | tr 'a-z-' 'A-Z_')
    if [[ $1 == --help || $1 == -h ]]; then
      print_header
      exit
    elif [[ $1 == --?* && $flags == *" $1= "* ]]; then
      [ -n "${2:-}" ] || usage_error "$1 needs a value; see --help"
      printf -v "$name" '%s' "$2"
      shift
    elif [[ $1 == --?* && $flags == *" $1 "* ]]; then
      printf -v "$name" yes
    elif [[ $1 != -* && $flags == *" CONFIG "* && -z $foreign ]]; then
      CONFIGS+=("$1")
    elif [ -n "$command" ]; then
      foreign=yes
      REST+=("$1")
    else
      usage_error "unknown argument $1; see --help"
    fi
    shift
  done
  if [[ $flags == *" CONFIG "* && ${#CONFIGS[@]} -eq 0 ]]; then
    usage_error "name at least one CONFIG, as in configs/$DATASET; see --help"
  fi
  whole_number --limit "$LIMIT"
  [ -n "$OUTPUT" ] || OUTPUT=$(default_output)
  case $OUTPUT in
    /*) ;;
    *) OUTPUT=$PWD/$OUTPUT ;;
  esac
  STEPS=$OUTPUT/steps
}

# find_program NAME: prints where it is; status 1 if it is nowhere.
find_program() {
  if [ -x "$VENV/bin/$1" ]; then
    printf '%s\n' "$VENV/bin/$1"
  else
    type -P "$1"
  fi
}

# run_program NAME HOW-TO-INSTALL ARGUMENTS...
run_program() {
  local name=$1 install=$2 program
  shift 2
  program=$(find_program "$name") || fail "$name is neither in $VENV/bin nor on the PATH: $install"
  "$program" "$@"
}

INSTALL="run \`pip install -c constraints.txt .\` in $ROOT, or name the virtual environment that has it: OWF_VENV=DIR"
owf() { run_program owf "$INSTALL" "$@"; }
sacrebleu() { run_program sacrebleu "$INSTALL" "$@"; }

# needs FILE SCRIPT: refuses to go on without what another script of the dataset makes.
needs() { [ -e "$1" ] || usage_error "$1 is not there: run scripts/$DATASET/$2 first, with the same --output"; }

# begun SCRIPT TEXT: refuses other settings than those of the script's steps, SCRIPT or SCRIPT-..., that are done.
begun() {
  compgen -G "$STEPS/$1*.done" >/dev/null || rm -f "$OUTPUT/$1.settings"
  same_settings "$OUTPUT/$1.settings" "$2"
}

# step_on SETTINGS FILE NAME COMMAND...: a step that is done again if its settings, or FILE, changed since.
step_on() {
  local settings=$1 file=$2 name=$3
  shift 2
  if [ "$(cat "$STEPS/$name.settings" 2>/dev/null)" != "$settings" ] || [ "$file" -nt "$STEPS/$name.done" ]; then
    rm -f "$STEPS/$name.done"
    mkdir -p "$STEPS"
    printf '%s\n' "$settings" >"$STEPS/$name.settings"
  fi
  step "$@"
}

# fetch URL FILE: downloads a file, unless it is there.
fetch() {
  [ ! -e "$2" ] || return 0
  type -P curl >/dev/null || fail "curl is not installed; with --local DIR nothing is fetched"
  mkdir -p "$(dirname "$2")"
  curl --fail --location --retry 3 --silent --show-error --output "$2.part" "$1" || fail "$1 can't be fetched"
  mv "$2.part" "$2"
}

# mtdata ARGUMENTS...: it keeps what it fetched in $MTDATA, which is in OUTPUT by default.
mtdata() {
  local bar=--pbar
  [ -t 2 ] || bar=--no-pbar
  MTDATA=${MTDATA:-$OUTPUT/mtdata-cache} run_program mtdata "run \`pip install mtdata==0.5.1\`" "$bar" "$@"
}

# fetch_test SET SRC TGT FIELD FILE: a side of one of sacreBLEU's test sets; its fields are src, ref, ref:A, ...
fetch_test() {
  mkdir -p "$(dirname "$5")"
  sacrebleu --test-set "$1" --language-pair "$2-$3" --echo "$4" >"$5.part"
  mv "$5.part" "$5"
}

# text FILE: prints FILE or FILE.gz, whichever is there.
text() {
  if [ -e "$1" ]; then
    printf '%s\n' "$1"
  elif [ -e "$1.gz" ]; then
    printf '%s\n' "$1.gz"
  else
    usage_error "neither $1 nor $1.gz is there"
  fi
}

# copy_pairs FROM TO SRC TGT [FLAGS...]: the pairs FROM.SRC and FROM.TGT, plain or gzipped, to TO.SRC and TO.TGT. Every
# line is checked; both files appear complete or not at all. FLAGS are those of `owf pairs`: --limit N, --lines N, ...
copy_pairs() {
  local from=$1 to=$2 source=$3 target=$4 sources targets
  shift 4
  sources=$(text "$from.$source") || exit
  targets=$(text "$from.$target") || exit
  owf pairs --input "$sources" "$targets" --output "$to.$source" "$to.$target" --overwrite "$@"
}

# prepare_data SRC TGT FLAGS...: OUTPUT/data from OUTPUT/raw; FLAGS and $REST go to `owf prepare`, and $WORKERS if it is
# set, which changes nothing of what is made.
WORKERS=
prepare_data() {
  local source=$1 target=$2
  shift 2
  needs "$OUTPUT/raw/train.$source" download.sh
  begun preprocess "$* ${REST[*]-}"
  step preprocess owf prepare --train "$OUTPUT/raw/train" --valid "$OUTPUT/raw/valid" --test "$OUTPUT/raw/test" \
    --langs "$source-$target" --output "$OUTPUT/data" ${WORKERS:+--workers "$WORKERS"} "$@" ${REST[@]+"${REST[@]}"}
}

# first_lines FILE: prints FILE; with --limit, the name of a copy of its first lines.
first_lines() {
  local copy
  if [ -z "$LIMIT" ]; then
    printf '%s\n' "$1"
    return
  fi
  copy=$OUTPUT/first-$LIMIT/$(basename "$1")
  mkdir -p "$(dirname "$copy")"
  head -n "$LIMIT" "$1" >"$copy.tmp"
  mv "$copy.tmp" "$copy"
  printf '%s\n' "$copy"
}

# config_name CONFIG: the name of its run's folder.
config_name() { basename "$1" .yaml; }

# config_path CONFIG: what `owf train` takes: a file, or DATASET/NAME.
config_path() {
  case $1 in
    *.yaml | */*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$DATASET/$1" ;;
  esac
}

# data_folders: OUTPUT/data, or all its shards with `:` between, as fairseq takes them.
data_folders() {
  local shards=("$OUTPUT"/data/shard-*)
  if [ -e "${shards[0]}" ]; then
    (IFS=: && printf '%s\n' "${shards[*]}")
  else
    printf '%s\n' "$OUTPUT/data"
  fi
}

# train_configs: trains each of $CONFIGS, with the flags in $REST; one that was interrupted goes on. What it is trained
# with is the whole command of fairseq-train, so that a config that was changed is not taken for one that is done.
train_configs() {
  local config name data training settings
  needs "$OUTPUT/data" preprocess.sh
  data=$(data_folders)
  for config in "${CONFIGS[@]}"; do
    name=$(config_name "$config")
    training=("$(config_path "$config")" --data "$data" --save-dir "$OUTPUT/$name" ${REST[@]+"${REST[@]}"})
    settings=$(owf train "${training[@]}" --dry-run) || exit
    [[ " ${REST[*]-} " != *" --dry-run "* ]] || { printf '%s\n' "$settings" && continue; }
    step_on "$settings" "$OUTPUT/data" "train-$name" owf train "${training[@]}"
  done
}

CHECKPOINT=checkpoint_best.pt

# translate_test SRC TGT: the test set with $CHECKPOINT of each of $CONFIGS, line by line, to OUTPUT/NAME/test.TGT.
translate_test() {
  local source=$1 target=$2 config name data input
  needs "$OUTPUT/raw/test.$source" download.sh
  data=$(data_folders)
  input=$(first_lines "$OUTPUT/raw/test.$source")
  for config in "${CONFIGS[@]}"; do
    name=$(config_name "$config")
    needs "$OUTPUT/$name/$CHECKPOINT" "train.sh $name"
    step_on "$CHECKPOINT $input ${REST[*]-}" "$OUTPUT/$name/$CHECKPOINT" "translate-$name" \
      owf translate "$OUTPUT/$name/$CHECKPOINT" --data "${data%%:*}" --input "$input" \
      --output "$OUTPUT/$name/test.$target" --overwrite ${REST[@]+"${REST[@]}"}
  done
}

# evaluate_test SRC TGT REFERENCE...: scores the translations of $CONFIGS, compares them with the first, and prints them
# beside the rows of the paper's table $TABLE. $METRICS and $REST go to `owf evaluate`. If $SPEED is set, the speed is
# measured on so many sentences.
METRICS=(bleu chrf)
TABLE=one_wide
PAIR= # the paper's data whose rows stand beside; SRC-TGT by default
SPEED=
CPU=
evaluate_test() {
  local source=$1 target=$2 config name reference hypotheses=() references=() results=("$OUTPUT/scores.json")
  shift 2
  whole_number --speed "$SPEED"
  for config in "${CONFIGS[@]}"; do
    name=$(config_name "$config")
    needs "$OUTPUT/$name/test.$target" "generate.sh $name"
    hypotheses+=("$name=$OUTPUT/$name/test.$target")
  done
  for reference in "$@"; do
    needs "$reference" download.sh
    references+=("$(first_lines "$reference")")
  done
  owf evaluate "${hypotheses[@]}" --ref "${references[@]}" --src "$(first_lines "$OUTPUT/raw/test.$source")" \
    --target-lang "$target" --baseline "$(config_name "${CONFIGS[0]}")" --metrics "${METRICS[@]}" \
    --json "$OUTPUT/scores.json" --overwrite ${CPU:+--cpu} ${REST[@]+"${REST[@]}"}
  if [ -n "$SPEED" ]; then
    measure_speed "$OUTPUT/raw/test.$source"
    results+=("$OUTPUT/speed.json")
  fi
  owf report "${results[@]}" --table "$TABLE" --pair "${PAIR:-$source-$target}" --only-ours \
    --output "$OUTPUT/table.md" --overwrite
}

# measure_speed FILE: as the paper does, one sentence at a time, beam 5, five runs; all of $CONFIGS in turn in each.
measure_speed() {
  local config checkpoint newest='' models=() data
  for config in "${CONFIGS[@]}"; do
    checkpoint=$OUTPUT/$(config_name "$config")/$CHECKPOINT
    models+=("$(config_name "$config")=$checkpoint")
    if [ -z "$newest" ] || [ "$checkpoint" -nt "$newest" ]; then newest=$checkpoint; fi
  done
  data=$(data_folders)
  step_on "$SPEED ${CPU:+--cpu} ${models[*]}" "$newest" speed owf benchmark "${models[@]}" --data "${data%%:*}" \
    --input "$1" --sentences "$SPEED" ${CPU:+--cpu} --json "$OUTPUT/speed.json" --overwrite
}

# add_comet: COMET to $METRICS, if it is installed.
add_comet() {
  if find_program comet-score >/dev/null; then
    METRICS+=(comet)
  else
    say "COMET is not installed: ${METRICS[*]} only"
  fi
}
