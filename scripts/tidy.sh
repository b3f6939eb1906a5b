#!/usr/bin/env bash
# scripts/tidy.sh [FILE...]: clang-tidy over the given sources, or over all that build/dev compiles.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f build/dev/compile_commands.json ] || bash scripts/build.sh dev
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files '*.cpp'); fi
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-22 -p build/dev --quiet 2>/dev/null
