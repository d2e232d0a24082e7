#!/usr/bin/env bash
# Trains models on Multi30k; one that was interrupted goes on.
#
#   bash scripts/multi30k/train.sh multi30k/small multi30k/small_one_wide_ffn --cpu
#
# Words: configs, then flags of `owf train` and of fairseq-train, which win over the configs'.
# Environment: RUN, the run's folder with data/, where each model gets a folder (runs/multi30k)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
owf train "$@" --run "${RUN:-$ROOT/runs/multi30k}"
