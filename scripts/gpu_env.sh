# scripts/gpu_env.sh: sourced by what runs on a machine with a GPU. Sets bin, cases, plans and python, and finds NVIDIA's libraries.
# In a checkout it builds first; in a folder that scripts/pack_gpu.sh made there is everything but the driver, Python and NVIDIA's
# libraries (those of a PyTorch for CUDA 13 will do).
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -d cases ]; then # packed
  bin=bin cases=cases plans=bench python=python3
  export DS_LIBRARY_PATH_BEFORE="${LD_LIBRARY_PATH:-}" # bench/gpu_step.py
  wheels=$(python3 -c 'import glob, nvidia; print(":".join(glob.glob(list(nvidia.__path__)[0] + "/*/lib")))' 2>/dev/null || true)
  # NVIDIA's wheels first: what a toolkit has may be older than what PyTorch runs.
  export LD_LIBRARY_PATH="${wheels:+$wheels:}$PWD/lib:$DS_LIBRARY_PATH_BEFORE"
elif [ -e build/gpu-pack.tar.gz ] && ! { command -v nvcc && command -v llvm-config-22; } >/dev/null; then
  echo "this machine cannot build, so build/gpu-pack.tar.gz is unpacked" >&2
  # Half an archive leaves nothing that a later call would run; what earlier calls found stays.
  rm -rf build/gpu-pack.part
  if ! python3 -m tarfile -e build/gpu-pack.tar.gz build/gpu-pack.part >/dev/null 2>&1; then
    rm -rf build/gpu-pack.part
    echo "error: build/gpu-pack.tar.gz cannot be unpacked, it was cut short or the disk is full; copy it anew" >&2
    exit 1
  fi
  cp -rf build/gpu-pack.part/gpu-pack build
  rm -rf build/gpu-pack.part
  exec "build/gpu-pack/scripts/$(basename "$0")" "$@"
else
  bin=build/cuda/bin cases=build/gpu-cases plans=build/gpu-plans python=build/venv/bin/python
  bash scripts/install.sh
  bash scripts/install-cuda.sh
  bash scripts/build.sh dev ds-opt
  bash scripts/build.sh cuda gpu-tests
  $python scripts/gpu_cases.py make $cases --bin build/dev/bin
fi
