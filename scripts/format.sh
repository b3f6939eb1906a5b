#!/usr/bin/env bash
# scripts/format.sh [--fix]: clang-format over all C++ sources; without --fix it only says what differs and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files '*.cpp' '*.h' '*.cu' '*.cuh')
if [ "${1:-}" = --fix ]; then
  clang-format-22 -i "${files[@]}"
else
  clang-format-22 --dry-run --Werror "${files[@]}"
fi
