#!/usr/bin/env bash
# scripts/install-cuda.sh [PIP-OPTION...]: puts the headers and libraries that a CUDA build links (cuBLASLt, cuDNN and its frontend, NCCL) into
# build/cuda-wheels: NVIDIA's wheels, the versions that PyTorch 2.11 for CUDA 13.0 carries. nvcc is the toolkit's.
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=(nvidia-cublas==13.1.0.3 nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13==2.28.9 nvidia-cudnn-frontend==1.16.0)

# The stamp holds what the folder was made from.
[ "$(cat build/cuda-wheels/.wheels 2>/dev/null)" = "${wheels[*]}" ] && exit 0
echo "putting ${wheels[*]} into build/cuda-wheels (some 1 GB)" >&2
[ -x build/venv/bin/python ] || python3 -m venv build/venv
rm -rf build/cuda-wheels
build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/cuda-wheels "$@" "${wheels[@]}"
echo "${wheels[*]}" >build/cuda-wheels/.wheels
