#!/usr/bin/env bash
# scripts/test_gpu.sh: everything that needs a GPU.
# The last line is "N passed, N failed, N skipped"; the exit code is 1 where something failed, 77 where there is no GPU.
set -euo pipefail
. "$(dirname "$0")/gpu_env.sh"
if ! $bin/ds-run info | grep -q '^cuda  *available'; then
  $bin/ds-run info | grep '^cuda'
  echo "nothing was tested: there is no GPU that ds-run can use"
  echo "0 passed, 0 failed, $($python scripts/gpu_cases.py count $cases) skipped"
  exit 77
fi
$bin/ds-run info | grep -E '^(cuda|gpu)'
exec $python scripts/gpu_tests.py $bin $cases
