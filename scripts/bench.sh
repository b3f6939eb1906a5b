#!/usr/bin/env bash
# Builds the release tools and runs the benches, one after another also where one fails; results go to stdout. Arguments go to
# bench/train_step.py.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
bash scripts/install.sh
bash scripts/build.sh release all benches >build/bench-build.log 2>&1 || { tail -40 build/bench-build.log >&2; exit 1; }
failed=()
run() { "$@" || failed+=("$*"); }
run build/venv/bin/python bench/train_step.py "$@"
for bench in memory host_update compile_time check_table zero_ranks pipeline flight_cost; do
  run build/venv/bin/python bench/$bench.py
done
run build/release/bin/bench-scheduling
run build/release/bin/bench-kernels
[ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}" >&2; exit 1; }
