#!/usr/bin/env bash
# Everything that only a GPU can show, on one GPU in at most 9 minutes, with a table printed last: training in half
# precision (loss, loss scale, tokens a second; peak memory at the configs' 3,584 tokens), decoding in half precision
# (the paper does not say its own), also by batch size. Without a GPU: small models, in single precision.
#
#   bash scripts/gpu_check.sh
#   bash scripts/gpu_check.sh --output runs/gpu-check --only data train-tiny decoding
#
# --output DIR    folder of the table, the results as JSON, and the logs (default: runs/gpu-check)
# --only PART ... some of: data (trainings need it), train-{tiny,vanilla,one-wide,decoder-only}, decoding, sweep
#
# It installs nothing: it takes the Python of the virtual environment, or else the one on the PATH, that has torch and
# fairseq; and this checkout's owf_fairseq, installed or not. The exit status is 1 if a part failed.
# Environment: OWF_VENV, the virtual environment (default: .venv).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
for python in "$VENV/bin/python" python3 python; do
  if "$python" -c 'import importlib.util as util, sys; sys.exit(not all(map(util.find_spec, ("torch", "fairseq"))))' 2>/dev/null; then
    exec "$python" "$ROOT/scripts/gpu_check.py" "$@"
  fi
done
fail "no Python with torch and fairseq in $VENV or on the PATH: run python3 -m venv .venv and .venv/bin/pip install -c constraints.txt . first"
