# What the scripts of this folder share: its languages; to be read by them: . "$(dirname "${BASH_SOURCE[0]}")/languages.sh"
# shellcheck shell=bash

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

# read_languages: sets $languages to those of the run's folder, in the order of their tags.
read_languages() {
  needs "$OUTPUT/langs.txt" download.sh
  read -r -a languages <"$OUTPUT/langs.txt"
}

# list_pairs: sets $pairs to all pairs of $languages, such as de-en, and $directions to both directions of each.
list_pairs() {
  local source target
  pairs=()
  directions=()
  for source in "${languages[@]}"; do
    for target in "${languages[@]}"; do
      [ "$source" = "$target" ] || directions+=("$source-$target")
      [[ ! $source < $target ]] || pairs+=("$source-$target")
    done
  done
}
