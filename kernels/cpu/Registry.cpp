//===- Registry.cpp - the CPU kernels by name -----------------------------===//
#include "kernels/KernelRegistry.h"
#include "kernels/KernelRows.h"
#include "kernels/cpu/Widened.h"

#include <memory>

namespace ds::kernels {

// make<Factory> (fast) and make<Factory>Reference (obvious) of every row, each in its own file; some rows share one.
#define DS_KERNEL(name, factory, operands, attributes, cpuWorkspace, cudaWorkspace, flops, text)                       \
  std::unique_ptr<Kernel> make##factory(const Invocation &, const BuildOptions &);                                     \
  std::unique_ptr<Kernel> make##factory##Reference(const Invocation &, const BuildOptions &);
#include "kernels/Kernels.inc"
#undef DS_KERNEL

const KernelRegistry &cpuKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
#define DS_KERNEL(name, factory, operands, attributes, cpuWorkspace, cudaWorkspace, flops, text)                       \
  kernels.add(#name, kernel<#name>.computes() ? Factory(widened<make##factory>) : Factory(make##factory));
#include "kernels/Kernels.inc"
#undef DS_KERNEL
    return kernels;
  }();
  return registry;
}

const KernelRegistry &cpuReferenceKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
#define DS_KERNEL(name, factory, operands, attributes, cpuWorkspace, cudaWorkspace, flops, text)                       \
  kernels.add(#name, kernel<#name>.computes() ? Factory(widened<make##factory##Reference>)                             \
                                              : Factory(make##factory##Reference));
#include "kernels/Kernels.inc"
#undef DS_KERNEL
    return kernels;
  }();
  return registry;
}

} // namespace ds::kernels
