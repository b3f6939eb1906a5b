#!/usr/bin/env bash
# scripts/docs.sh [--check]: writes docs/reference/ from the dialects and passes; --check only says whether it would change.
# The page of the kernels is KernelsTest's (DS_UPDATE_DOCS=1).
set -euo pipefail
cd "$(dirname "$0")/.."
out=docs/reference
[ "${1:-}" = --check ] && out=$(mktemp -d)
mkdir -p "$out"
tblgen() { /usr/lib/llvm-22/bin/mlir-tblgen -I . -I /usr/lib/llvm-22/include "$@"; }
tblgen -gen-dialect-doc -dialect=train dialects/Train/TrainOps.td -o "$out/train.md"
tblgen -gen-dialect-doc -dialect=dist dialects/Dist/DistOps.td -o "$out/dist.md"
tblgen -gen-dialect-doc -dialect=plan dialects/Plan/PlanOps.td -o "$out/plan.md"
tblgen -gen-pass-doc compiler/passes/Passes.td -o "$out/passes.md"
rm -f "$out"/*.d
if [ "${1:-}" = --check ]; then
  diff -r -x kernels.md docs/reference "$out" || { echo "error: docs/reference is out of date; run make docs" >&2; exit 1; }
fi
