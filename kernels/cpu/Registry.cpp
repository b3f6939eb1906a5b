//===- Registry.cpp - the CPU kernels by name -----------------------------===//
#include "kernels/KernelRegistry.h"
#include "kernels/KernelRows.h"
#include "kernels/cpu/Widened.h"

#include <memory>

namespace ds::kernels {

// make<Factory> (fast) and make<Factory>Reference (obvious) of every row, each in its own file; some rows share one.
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  std::unique_ptr<Kernel> make##factory(const Invocation &, const BuildOptions &);                                     \
  std::unique_ptr<Kernel> make##factory##Reference(const Invocation &, const BuildOptions &);
#include "kernels/Kernels.inc"
#undef DS_KERNEL

// Of floats of 16 bits: matmul/matmul_bf16.h.
std::unique_ptr<Kernel> makeBf16Matmul(const Invocation &, const BuildOptions &);

namespace {

/// The kernel for floats of 16 bits that goes with one for float32, which may be that one.
template <Factory wide> constexpr Factory narrowKernel = nullptr;
template <> constexpr Factory narrowKernel<makeMatmul> = makeBf16Matmul;
template <> constexpr Factory narrowKernel<makeLayerNorm> = makeLayerNorm; // these know where they round
template <> constexpr Factory narrowKernel<makeRmsNorm> = makeRmsNorm;
template <> constexpr Factory narrowKernel<makeLayerNormReference> = makeLayerNormReference;
template <> constexpr Factory narrowKernel<makeRmsNormReference> = makeRmsNormReference;

} // namespace

const KernelRegistry &cpuKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  kernels.add(#name, kernel<#name>.computes() ? Factory(widened<make##factory, narrowKernel<make##factory>>)           \
                                              : Factory(make##factory));
#include "kernels/Kernels.inc"
#undef DS_KERNEL
    return kernels;
  }();
  return registry;
}

const KernelRegistry &cpuReferenceKernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry kernels;
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  kernels.add(#name, kernel<#name>.computes()                                                                          \
                         ? Factory(widenedReference<make##factory##Reference, narrowKernel<make##factory##Reference>>) \
                         : Factory(make##factory##Reference));
#include "kernels/Kernels.inc"
#undef DS_KERNEL
    return kernels;
  }();
  return registry;
}

} // namespace ds::kernels
