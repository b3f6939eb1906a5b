//===- CudaKernels.h - the kernels of NVIDIA GPUs -------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

namespace ds::kernels {

/// Kernels that enqueue on CallContext::stream and return.
const KernelRegistry &cudaKernels();

} // namespace ds::kernels
