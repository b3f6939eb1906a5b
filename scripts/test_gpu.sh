#!/usr/bin/env bash
# scripts/test_gpu.sh: everything that needs a GPU. In a checkout it builds first; in a folder that scripts/pack_gpu.sh made it
# needs Python, the GPU's driver and NVIDIA's libraries (those of a PyTorch for CUDA 13 will do).
# The last line is "N passed, N failed, N skipped"; the exit code is 1 where something failed, 77 where there is no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -d cases ]; then # packed
  bin=bin cases=cases python=python3
  export LD_LIBRARY_PATH="$PWD/lib:${LD_LIBRARY_PATH:-}"
  for folder in $(python3 -c 'import glob, nvidia; print(*glob.glob(list(nvidia.__path__)[0] + "/*/lib"))' 2>/dev/null); do
    LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$folder"
  done
else
  bin=build/cuda/bin cases=build/gpu-cases python=build/venv/bin/python
  bash scripts/install.sh
  bash scripts/install-cuda.sh
  bash scripts/build.sh dev ds-opt
  bash scripts/build.sh cuda gpu-tests
  $python scripts/gpu_cases.py make $cases --bin build/dev/bin
fi

if ! $bin/ds-run info | grep -q '^cuda  *available'; then
  $bin/ds-run info | grep '^cuda'
  echo "nothing was tested: there is no GPU that ds-run can use"
  echo "0 passed, 0 failed, $($python scripts/gpu_cases.py count $cases) skipped"
  exit 77
fi
$bin/ds-run info | grep -E '^(cuda|gpu)'
exec $python scripts/gpu_tests.py $bin $cases
