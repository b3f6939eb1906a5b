"""Our own kernels by ptxas: registers within a block's, no spills and two blocks at once where it matters, and docs/ptxas.md up to date; skipped without nvcc 13."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "ptxas.py"


def run(*arguments):
    done = subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], text=True, capture_output=True)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    return done


def test_kernels_are_small_enough():
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr


MANY = """#include <cstdint>
__global__ void BOUNDS manyKernel(const float *x, float *y) {
  float v[160];
#pragma unroll
  for (int i = 0; i < 160; ++i)
    v[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 160; ++i)
    y[i * 1024 + threadIdx.x] = v[i] * v[159 - i];
}
"""


@pytest.mark.parametrize("bounds, family, error", [
    ("__launch_bounds__(1024)", "norm", "manyKernel spills"),
    ("", "norm", "registers for each of 1024 threads, but a block has 65536"),
    ("__launch_bounds__(1024)", "attention", None),  # an oracle may
    ("__launch_bounds__(512)", "norm", "for each of 512 threads is alone on a multiprocessor"),
    ("__launch_bounds__(512)", "attention", None),
    ("__launch_bounds__(256, 2)", "norm", None),
])
def test_a_kernel_that_is_too_large_is_named(bounds, family, error, tmp_path):
    source = tmp_path / family / "many.cu"
    source.parent.mkdir()
    source.write_text(MANY.replace("BOUNDS", bounds))
    done = run(source)
    assert (done.returncode != 0) == (error is not None), done.stdout + done.stderr
    assert error is None or error in done.stderr
