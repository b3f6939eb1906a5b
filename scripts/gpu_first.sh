#!/usr/bin/env bash
# scripts/gpu_first.sh [--out FOLDER] [--minutes M] [PART...]: the first minutes on a GPU; gpu_first.py says what the parts are.
set -euo pipefail
. "$(dirname "$0")/gpu_env.sh"
if [ ! -e $plans/h200/small-bfloat16.dsplan ]; then # in a checkout; a pack has them
  bash scripts/gpu_plans.sh $plans
fi
exec $python scripts/gpu_first.py $bin $cases $plans "$@"
