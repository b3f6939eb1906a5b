//===- Tuner.h - the fastest of a library's algorithms for a call ---------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/TunedCall.h"

namespace ds::kernels {

/// Runs a call with each of its library's algorithms, on drawn operands on the current device. Chooses the fastest of
/// those whose results have the same bits as with the library's own choice, if it takes less than 0.98 of that one's
/// time. Of a call whose results are too few to tell (less than 128 elements of 16 bits), none has. Operands are not in
/// the GPU's caches when a call begins, and algorithms take turns. Throws ds::Error.
TunedCall tunedCall(const Invocation &invocation);

} // namespace ds::kernels
