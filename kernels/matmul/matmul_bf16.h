//===- matmul_bf16.h - products on a processor's units for bfloat16 -------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <memory>

namespace ds::kernels {

/// matmul of bfloat16 numbers on units for them. Null where the machine has none, where the operands have another type,
/// or where packed operands would take more than float32 copies, as of products of few rows or columns.
std::unique_ptr<Kernel> makeBf16Matmul(const Invocation &invocation, const BuildOptions &options);

} // namespace ds::kernels
