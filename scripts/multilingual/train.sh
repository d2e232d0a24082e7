#!/usr/bin/env bash
# Trains multilingual models; one that was interrupted goes on.
#
#   bash scripts/multilingual/train.sh multilingual/big multilingual/big_one_wide_ffn
#
# Words: configs, then flags of `owf train` and of fairseq-train, which win over the configs'.
# Environment: RUN, the run's folder with data/ and langs.txt, where each model gets a folder (runs/multilingual)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
RUN=${RUN:-$ROOT/runs/multilingual}
[ -e "$RUN/langs.txt" ] || usage_error "$RUN/langs.txt is not there: run scripts/multilingual/download.sh first"
owf train "$@" --run "$RUN" --langs "$(<"$RUN/langs.txt")" --lang-pairs "$(<"$RUN/directions.txt")"
