#!/usr/bin/env bash
# Trains models on WMT16 English-Romanian; one that was interrupted goes on.
#
#   bash scripts/wmt16_en_ro/train.sh wmt16_en_ro/base wmt16_en_ro/base_one_wide_ffn
#
# Words: configs, then flags of `owf train` and of fairseq-train, which win over the configs'.
# Environment: RUN, the run's folder with data/, where each model gets a folder (runs/wmt16_en_ro)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
owf train "$@" --run "${RUN:-$ROOT/runs/wmt16_en_ro}"
