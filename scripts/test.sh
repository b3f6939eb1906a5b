#!/usr/bin/env bash
# scripts/test.sh subset|all: installs what is missing, builds, runs every test that needs no GPU.
# The last line is "N passed, N failed, N skipped"; the exit code says whether something failed.
set -euo pipefail
cd "$(dirname "$0")/.."
scope=${1:-subset}
# Prints how long all before has taken: where the time of a slow run goes.
after() { echo "after $((SECONDS / 60)) min: $1"; }
bash scripts/install.sh
after installing
mkdir -p build
bash scripts/format.sh
bash scripts/docs.sh --check
python3 scripts/include_graph.py --check
bash scripts/build.sh dev
after "building dev"
# Sanitizers see what handles untrusted bytes and threads: kernels, runtime, configuration, plan reader, checker, importer.
bash scripts/build.sh asan sanitized-tests
after "building asan"
bash scripts/build.sh tsan sanitized-tests
after "building tsan"
# What is for GPUs is compiled and linked where there is nvcc, and judged as far as that goes without one: for all GPUs, or for Hopper
# alone, which takes half of the time.
cuda=no
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  bash scripts/install-cuda.sh
  cuda=hopper
  [ "$scope" = all ] && cuda=cuda
  bash scripts/build.sh $cuda cuda-tests
  after "building $cuda"
fi
DS_TEST_SCOPE=$scope DS_TEST_CUDA=$cuda exec build/venv/bin/python scripts/run_tests.py
