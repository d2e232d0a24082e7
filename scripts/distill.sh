#!/usr/bin/env bash
# From a teacher to small students that serve in int8 with a shortlist: translates the training text with the teacher,
# trains the students on that, makes a shortlist, exports them, and prints a table of quality, speed and size (in the
# folder of the run: student.json, student.md, student.png). docs/student.md has the same steps one by one.
#
#   bash scripts/distill.sh                      # Multi30k English-German, its teacher included
#   bash scripts/distill.sh --original           # with students of the original text beside them
#   RUN=runs/wmt22_en_de bash scripts/distill.sh --students scripts/student/wmt22_en_de \
#     --teacher runs/wmt22_en_de/big/checkpoint_best.pt
#
# --teacher CHECKPOINT  trained on RUN/data (default: teacher.yaml of --students is trained)
# --students DIR        of configs, one for each student (default: scripts/student/multi30k)
# --original            train the students on the original text, too
# --speed N             lines of the test text that speed is measured on (default: 200)
#
# What else is given goes to `owf train`. All is done on the CPU, but trainings where there is a GPU. It can be interrupted
# and started again with the same flags.
# Environment: RUN, the folder of the run (runs/student); raw/ and data/ in it are made from Multi30k unless they are there;
# LOCAL, a folder with Multi30k; SOURCE, TARGET, languages (en, de); VOCAB_SIZE (4000); TYPES, of the exported weights, of
# which the last is the teacher's while it translates ("float32 int8"); PYTHON, OWF_VENV
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
TEACHER='' STUDENTS=$ROOT/scripts/student/multi30k ORIGINAL='' SPEED=200 SOURCE=${SOURCE:-en} TARGET=${TARGET:-de}
training=()
read -r -a types <<<"${TYPES:-float32 int8}"
while [ $# -gt 0 ]; do
  case $1 in
    --original) ORIGINAL=1 && shift && continue ;;
    --teacher) TEACHER=${2:-} ;;
    --students) STUDENTS=${2:-} ;;
    --speed) SPEED=${2:-} ;;
    *) training+=("$1") && shift && continue ;;
  esac
  [[ ${2:-} == *[![:space:]]* ]] || usage_error "$1 needs a value; see --help"
  shift 2
done
export RUN=${RUN:-$ROOT/runs/student} SOURCE TARGET
type -P nvidia-smi >/dev/null || training+=(--cpu)
students=()
for config in "$STUDENTS"/[!_]*.yaml; do
  [[ $config == */teacher.yaml || ! -e $config ]] || students+=("$config")
done
[ ${#students[@]} -gt 0 ] || usage_error "--students $STUDENTS: the folder has no config, NAME.yaml, of a student"
[ -z "$TEACHER" ] || [ -e "$TEACHER" ] || usage_error "--teacher $TEACHER: there is no such checkpoint"
[ -n "$TEACHER" ] || [ -e "$STUDENTS/teacher.yaml" ] ||
  usage_error "--students $STUDENTS: the folder has no teacher.yaml; name a checkpoint with --teacher"

# served NAME CHECKPOINT FLAGS: exports it, and translates the test text with and without the shortlist that FLAGS name.
served() {
  local name=$1 folder type
  for type in "${types[@]}"; do
    folder=$RUN/served/$name.$type
    owf export "$2" --quantization "$type" --output "$folder" "${@:3}"
    owf translate "$folder" --input "$RUN/raw/test.$SOURCE" --output "$folder.$TARGET" --no-shortlist
    translated+=("$name.$type=$folder.$TARGET")
    [[ $name == original.* ]] || timed+=("$name.$type=$folder") without+=("$name.$type")
    [ $# -gt 2 ] || continue
    # a batch has one shortlist: a sentence has its own only where it is alone
    owf translate "$folder" --input "$RUN/raw/test.$SOURCE" --output "$folder.shortlist.$TARGET" --batch-size 1
    translated+=("$name.$type.shortlist=$folder.shortlist.$TARGET")
    [[ $name == original.* ]] || timed+=("$name.$type.shortlist=$folder")
  done
}

main() {
  local begun config data name kinds=(distilled) text=(--langs "$SOURCE-$TARGET")
  local first=() translated=() timed=() without=()
  ensure_venv export,plot,shortlist
  begun=$SECONDS
  if [ ! -e "$RUN/raw/train.$SOURCE" ]; then
    say "text"
    bash "$ROOT/scripts/multi30k/download.sh"
  fi
  [ -e "$RUN/data" ] || bash "$ROOT/scripts/multi30k/preprocess.sh" --vocab-size "${VOCAB_SIZE:-4000}"
  say "teacher"
  if [ -z "$TEACHER" ] || [ -n "$ORIGINAL" ]; then
    [ -n "$TEACHER" ] || first=("$STUDENTS/teacher.yaml")
    mkdir -p "$RUN/original"
    ln -sfn ../data "$RUN/original/data" # in shards or not, as --run finds it
    owf train "${first[@]}" ${ORIGINAL:+"${students[@]}"} --run "$RUN/original" "${training[@]}"
  fi
  [ -z "$ORIGINAL" ] || kinds+=(original)
  served teacher "${TEACHER:-$RUN/original/teacher/checkpoint_best.pt}"
  say "distilled text"
  owf distill "$RUN/served/teacher.${types[-1]}" --train "$RUN/raw/train" "${text[@]}" --output "$RUN/distilled/raw/train" \
    --json "$RUN/distilled/report.json"
  owf prepare --train "$RUN/distilled/raw/train" --valid "$RUN/raw/valid" --test "$RUN/raw/test" "${text[@]}" \
    --like "$RUN/data" --output "$RUN/distilled/data"
  say "students"
  owf train "${students[@]}" --run "$RUN/distilled" "${training[@]}"
  say "shortlist"
  # of the original text: the teacher's translations have not all words that a reference has
  owf shortlist "$RUN/data" --output "$RUN/shortlist.txt" --json "$RUN/shortlist.json"
  say "export, translation"
  for data in "${kinds[@]}"; do
    for config in "${students[@]}"; do
      name=$(basename "$config" .yaml)
      served "$data.$name" "$RUN/$data/$name/checkpoint_best.pt" --shortlist "$RUN/shortlist.txt"
    done
  done
  say "scores"
  owf evaluate "${translated[@]}" --ref "$RUN/raw/test.$TARGET" --src "$RUN/raw/test.$SOURCE" \
    --target-lang "$TARGET" --metrics bleu chrf --json "$RUN/scores.json" --overwrite
  say "speed"
  for name in "5 1" "1 1,32"; do
    owf benchmark "${timed[@]}" --no-shortlist "${without[@]}" --input "$RUN/raw/test.$SOURCE" --sentences "$SPEED" \
      --beam "${name% *}" --batch-sizes "${name#* }" --cpu --json "$RUN/speed_beam_${name% *}.json" --overwrite
  done
  python "$ROOT/scripts/student/table.py" "$RUN/scores.json" "$RUN"/speed_beam_{5,1}.json --output "$RUN/student"
  say "all steps together took $(minutes $((SECONDS - begun))) after the installation; $RUN/student.md"
}
{
  main
  exit
}
