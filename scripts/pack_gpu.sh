#!/usr/bin/env bash
# scripts/pack_gpu.sh [FILE]: builds ds-run, libds-cuda.so, the tests that need a GPU and their plans, and puts them into one archive
# (default build/gpu-pack.tar.gz) for a machine with a GPU, Python and NVIDIA's libraries and nothing else; gpu_pack.py says what is in it.
# There: python3 -m tarfile -e FILE, then gpu-pack/scripts/gpu_first.sh and gpu-pack/scripts/test_gpu.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/install.sh
bash scripts/install-cuda.sh
bash scripts/build.sh dev ds-opt
bash scripts/build.sh hopper gpu-tests
rm -rf build/gpu-cases build/gpu-plans
build/venv/bin/python scripts/gpu_cases.py make build/gpu-cases --bin build/dev/bin
bash scripts/gpu_plans.sh build/gpu-plans
bin=build/hopper/bin
build/venv/bin/python scripts/gpu_pack.py "${1:-build/gpu-pack.tar.gz}" --bin $bin/ds-run $bin/*ConformanceTest $bin/CudaKernelsTest \
  --lib build/hopper/lib/libds-cuda.so --cases build/gpu-cases --plans build/gpu-plans
