//===- machine_limits.cpp - FMA peak and copy bandwidth of N cores ---------===//
//
//   machine-limits 2      prints FLOP/s and bytes/s
//
//===----------------------------------------------------------------------===//
#include "bench/kernels/Machine.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  if (argc > 1)
    setenv("DS_BENCH_THREADS", argv[1], /*overwrite=*/1);
  std::printf("%.0f %.0f\n", ds::kernels::bench::peakFlops(), ds::kernels::bench::copyBandwidth());
}
