#!/usr/bin/env bash
# Builds the release tools and runs the benches; results go to stdout. Arguments go to bench/train_step.py.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/install.sh
bash scripts/build.sh release >build/bench-build.log 2>&1 || { tail -40 build/bench-build.log >&2; exit 1; }
build/venv/bin/python bench/train_step.py "$@"
build/venv/bin/python bench/memory.py
build/venv/bin/python bench/compile_time.py
build/venv/bin/python bench/check_table.py
build/venv/bin/python bench/zero_ranks.py
build/venv/bin/python bench/pipeline.py
build/release/bin/bench-scheduling
build/release/bin/bench-kernels
