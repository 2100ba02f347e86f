#!/bin/sh
# Speed and memory on one CUDA GPU, in a few minutes: prints a table and saves it in benchmarks/results/gpu.md.
#   benchmarks/gpu.sh            needs what `make setup` installs, in .venv or in the python that is active
#   PYTHON=python3.12 benchmarks/gpu.sh
cd "$(dirname "$0")/.." || exit 1
if [ -z "$PYTHON" ]; then
  PYTHON=python3
  [ -x .venv/bin/python ] && PYTHON=.venv/bin/python
fi
exec "$PYTHON" -m benchmarks.gpu "$@"
