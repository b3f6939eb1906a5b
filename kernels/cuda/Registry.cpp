//===- Registry.cpp - the kernels of NVIDIA GPUs by name ------------------===//
#include "kernels/KernelRegistry.h"
#include "kernels/cuda/CudaKernels.h"

namespace ds::kernels {

const KernelRegistry &cudaKernels() {
  static const KernelRegistry registry;
  return registry;
}

} // namespace ds::kernels
