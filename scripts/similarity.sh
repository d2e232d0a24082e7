#!/usr/bin/env bash
# The paper's similarity tables and pictures on a dataset: fetches and prepares the text, trains the models of the
# tables' rows, and the first of them with other seeds too; compares what all of them make of the test set, component by
# component (`owf similarity`), and prints the tables last.
#
#   bash scripts/similarity.sh --dataset quickstart --cpu
#   bash scripts/similarity.sh --dataset multi30k --rows multi30k/small multi30k/small_one_wide_ffn --max-update 1200 --cpu
#   PREPARED=yes bash scripts/similarity.sh --dataset wmt22_en_de
#
# Flags: those of `owf reproduce`, --seeds and --capture among them; environment: see scripts/reproduce_tables.sh. It
# makes similarity-sublayer/ in the folder of the run, or similarity-module/.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
exec bash "$ROOT/scripts/reproduce_tables.sh" --table similarity "$@"
