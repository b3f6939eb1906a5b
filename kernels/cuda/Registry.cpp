//===- Registry.cpp - the kernels of NVIDIA GPUs by name ------------------===//
#include "kernels/KernelRegistry.h"
#include "kernels/cuda/CudaKernels.h"

#include <memory>

namespace ds::kernels {

// make<Factory> of every row, each in its own file; some rows share one.
namespace cuda {
#define DS_KERNEL(name, factory, operands, attributes, check, cpuWorkspace, cudaWorkspace, flops, text)                \
  std::unique_ptr<Kernel> make##factory(const Invocation &, const BuildOptions &);
#include "kernels/Kernels.inc"
#undef DS_KERNEL
} // namespace cuda

const KernelRegistry &cudaKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
#define DS_KERNEL(name, factory, operands, attributes, check, cpuWorkspace, cudaWorkspace, flops, text)                \
  kernels.add(#name, cuda::make##factory);
#include "kernels/Kernels.inc"
#undef DS_KERNEL
    return kernels;
  }();
  return registry;
}

} // namespace ds::kernels
