#!/usr/bin/env bash
# Trains models on IWSLT14 German-English; one that was interrupted goes on.
#
#   bash scripts/iwslt14_de_en/train.sh iwslt14_de_en/iwslt iwslt14_de_en/iwslt_one_wide_ffn
#
# Words: configs, then flags of `owf train` and of fairseq-train, which win over the configs'.
# Environment: RUN, the run's folder with data/, where each model gets a folder (runs/iwslt14_de_en)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
owf train "$@" --run "${RUN:-$ROOT/runs/iwslt14_de_en}"
