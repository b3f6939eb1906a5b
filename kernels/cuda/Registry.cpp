//===- Registry.cpp - the kernels of NVIDIA GPUs by name ------------------===//
#include "core/DType.h"
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "kernels/cuda/CudaKernels.h"

#include <memory>
#include <string>

namespace ds::kernels {

// make<Factory> of every row, each in its own file; some rows share one.
namespace cuda {
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  std::unique_ptr<Kernel> make##factory(const Invocation &, const BuildOptions &);
#include "kernels/Kernels.inc"
#undef DS_KERNEL
} // namespace cuda

/// What float16 would be computed with is not there: Number.cuh would take it for float64.
template <Factory make>
static std::unique_ptr<Kernel> withoutFloat16(const Invocation &invocation, const BuildOptions &options) {
  for (const TensorType &operand : invocation.operands)
    if (operand.dtype == DType::F16)
      throw Error("kernel '" + std::string(invocation.kernel) + "' has no float16 on a GPU; compute in bfloat16");
  return make(invocation, options);
}

const KernelRegistry &cudaKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  kernels.add(#name, withoutFloat16<cuda::make##factory>);
#include "kernels/Kernels.inc"
#undef DS_KERNEL
    return kernels;
  }();
  return registry;
}

} // namespace ds::kernels
