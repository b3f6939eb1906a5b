#!/usr/bin/env bash
# scripts/gpu_first.sh [--out FOLDER] [--minutes M] [PART...]: the first minutes on a GPU; gpu_first.py says what the parts are.
set -euo pipefail
. "$(dirname "$0")/gpu_env.sh"
if [ ! -e $plans/small-bfloat16.dsplan ]; then # in a checkout; a pack has them
  $python bench/gpu_step.py --prepare $plans --bin build/dev/bin
fi
exec $python scripts/gpu_first.py $bin $cases $plans "$@"
