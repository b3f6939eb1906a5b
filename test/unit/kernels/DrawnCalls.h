//===- DrawnCalls.h - random calls of every kernel, mostly in float64 ----===//
#pragma once

#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

struct DrawnCall {
  std::string kernel;
  std::vector<Buffer> operands; ///< results are garbage
  Attributes attributes;
};

/// A call of a kernel: by a function of its own in DrawnCalls.cpp, or by its row where that names all sizes and has no
/// lists among its attributes. Sizes are even and small, but so large that what is wrong is not right by chance.
DrawnCall drawCall(const KernelRow &row, Random &random);

} // namespace ds::kernels::test
