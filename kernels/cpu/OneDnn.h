//===- OneDnn.h - oneDNN, called with one thread --------------------------===//
//
// Pieces of a kernel run on our workers, and a library that cut them further would make sums depend on the number of
// threads: each worker is a thread that oneDNN finds alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <oneapi/dnnl/dnnl.h>

// Of the OpenMP runtime that oneDNN loads; omp.h is not there for every compiler.
extern "C" void omp_set_num_threads(int); // NOLINT(readability-identifier-naming)

namespace ds::kernels {

/// What oneDNN does next on the calling thread, it does there.
inline void oneDnnUsesThisThreadAlone() noexcept { omp_set_num_threads(1); }

} // namespace ds::kernels
