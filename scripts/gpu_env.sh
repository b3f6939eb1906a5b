# scripts/gpu_env.sh: sourced by what runs on a machine with a GPU. Sets bin, cases, plans and python, and finds NVIDIA's libraries.
# In a checkout it builds first; in a folder that scripts/pack_gpu.sh made there is everything but the driver, Python and NVIDIA's
# libraries (those of a PyTorch for CUDA 13 will do).
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -d cases ]; then # packed
  bin=bin cases=cases plans=bench python=python3
  export LD_LIBRARY_PATH="$PWD/lib:${LD_LIBRARY_PATH:-}"
  for folder in $(python3 -c 'import glob, nvidia; print(*glob.glob(list(nvidia.__path__)[0] + "/*/lib"))' 2>/dev/null); do
    LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$folder"
  done
else
  bin=build/cuda/bin cases=build/gpu-cases plans=build/gpu-plans python=build/venv/bin/python
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
