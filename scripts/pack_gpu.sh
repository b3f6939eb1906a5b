#!/usr/bin/env bash
# scripts/pack_gpu.sh [FILE]: puts ds-run, libds-cuda.so, the tests that need a GPU and their plans into one archive below 60 MiB
# (default build/gpu-pack.tar.xz), for a machine with a GPU and nothing else. There: tar xf, then gpu-pack/scripts/gpu_first.sh
# and gpu-pack/scripts/test_gpu.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:-build/gpu-pack.tar.xz}
pack=build/gpu-pack
limit=$((60 * 1024 * 1024))

bash scripts/install-cuda.sh
bash scripts/build.sh dev ds-opt
bash scripts/build.sh cuda gpu-tests
rm -rf $pack
mkdir -p $pack/bin $pack/lib $pack/scripts $pack/bench
build/venv/bin/python scripts/gpu_cases.py make $pack/cases --bin build/dev/bin
build/venv/bin/python bench/gpu_step.py --prepare $pack/bench --bin build/dev/bin
build/venv/bin/python bench/gpu_step.py --prepare $pack/bench --bin build/dev/bin --sizes small --dtype float32
cp build/cuda/bin/ds-run build/cuda/bin/*ConformanceTest build/cuda/bin/*Cuda*Test $pack/bin/
cp build/cuda/lib/libds-cuda.so $pack/lib/
# What such a machine may lack: all but the C library and what comes with NVIDIA's wheels or the driver.
ldd $pack/bin/* build/cuda/lib/libds-cuda.so | awk '/=> \//{print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcuda|libcublas.*|libcudnn.*|libnccl)\.so' |
  xargs -r -I{} cp -Ln {} $pack/lib/
strip --strip-unneeded $pack/bin/* $pack/lib/*
cp scripts/test_gpu.sh scripts/gpu_*.sh scripts/gpu_*.py $pack/scripts/
cp bench/gpu_step.py bench/rounds.py $pack/bench/
tar -C build -c gpu-pack | xz -6 -T2 >"$file"
bytes=$(stat -c %s "$file")
echo "$file: $bytes bytes ($((bytes / 1048576)) MiB), $(du -sm $pack | cut -f1) MiB unpacked"
if [ "$bytes" -ge $limit ]; then
  echo "error: it is not below $limit bytes; leave out cases" >&2
  exit 1
fi
