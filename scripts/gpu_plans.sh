#!/usr/bin/env bash
# scripts/gpu_plans.sh FOLDER: plans of GPT-2 for gpu_first.py, for an H100 in FOLDER/h100 and for an H200 in FOLDER/h200.
set -euo pipefail
for gpu in h100:h100x8 h200:h200x1; do
  build/venv/bin/python bench/gpu_step.py --prepare "$1/${gpu%:*}" --machine ${gpu#*:} --bin build/dev/bin
done
