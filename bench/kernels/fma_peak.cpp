//===- fma_peak.cpp - prints the FMA peak of N cores in FLOP/s -------------===//
//
//   fma-peak 2
//
//===----------------------------------------------------------------------===//
#include "bench/kernels/Machine.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  if (argc > 1)
    setenv("DS_BENCH_THREADS", argv[1], /*overwrite=*/1);
  std::printf("%.0f\n", ds::kernels::bench::peakFlops());
}
