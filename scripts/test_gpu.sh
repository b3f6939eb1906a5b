#!/usr/bin/env bash
# scripts/test_gpu.sh: everything that needs a GPU.
# The last line is "N passed, N failed, N skipped"; the exit code is 1 where something failed, 77 where there is no GPU.
set -euo pipefail
. "$(dirname "$0")/gpu_env.sh"
$bin/ds-run info | grep -E '^(cuda|gpu)'
exec $python scripts/gpu_tests.py $bin $cases
