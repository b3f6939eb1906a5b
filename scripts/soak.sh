#!/usr/bin/env bash
# scripts/soak.sh [SEEDS [DRAWS]]: the simulation (docs/simulation.md) under so many seeds, 100,000 by default, then so many drawn models and
# configurations (docs/drawn.md), 50,000 by default, on all cores. The exit code says whether a seed breaks the invariant, or a draw is at fault;
# its number is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:-100000}
workers=$(nproc)
draws=${2:-50000}
bash scripts/install.sh
bash scripts/build.sh dev simulate ds-opt ds-run
echo "seeds 0 to $((seeds - 1)) on $workers cores"
pids=()
for ((i = 0; i < workers; ++i)); do
  build/dev/bin/simulate --seeds "$((seeds * i / workers))-$((seeds * (i + 1) / workers - 1))" &
  pids+=($!)
done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=1; done
if [ $code = 0 ]; then echo "$seeds seeds held"; else echo "of $seeds seeds one broke the invariant, and those after it were not tried"; fi
build/venv/bin/python test/drawn/draw.py --count "$draws" --seed 2 --run $((draws / 50)) --jobs "$workers" || code=1
exit $code
