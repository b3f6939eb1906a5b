#!/usr/bin/env bash
# scripts/build.sh PRESET [TARGET...]: configures and builds a preset of CMakePresets.json in build/PRESET.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
# Paths in the compiler cache are relative to the checkout, so that clones share it.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
cmake --preset "$preset" >"build/$preset-configure.log" 2>&1 || { cat "build/$preset-configure.log" >&2; exit 1; }
targets=()
for target in "$@"; do targets+=(--target "$target"); done
cmake --build "build/$preset" "${targets[@]}"
