#!/usr/bin/env bash
# Trains models on the quickstart's text; one that was interrupted goes on.
#
#   bash scripts/quickstart/train.sh quickstart/small quickstart/small_one_wide_ffn --cpu
#
# Words: configs, then flags of `owf train` and of fairseq-train, which win over the configs'.
# Environment: RUN, the run's folder with data/, where each model gets a folder (runs/quickstart-SOURCE-TARGET); SOURCE, TARGET (en, de)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
SOURCE=${SOURCE:-en} TARGET=${TARGET:-de}
RUN=${RUN:-$ROOT/runs/quickstart-$SOURCE-$TARGET}
owf train "$@" --run "$RUN" --source-lang "$SOURCE" --target-lang "$TARGET"
