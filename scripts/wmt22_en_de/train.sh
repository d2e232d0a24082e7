#!/usr/bin/env bash
# Trains models on WMT22 English-German; one that was interrupted goes on.
#
#   bash scripts/wmt22_en_de/train.sh wmt22_en_de/big wmt22_en_de/big_one_wide_ffn
#
# Words: configs, then flags of `owf train` and of fairseq-train, which win over the configs'.
# Environment: RUN, the run's folder with data/, where each model gets a folder (runs/wmt22_en_de)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
owf train "$@" --run "${RUN:-$ROOT/runs/wmt22_en_de}"
