//===- matmul_epilogue.h - what matmul does to its product ----------------===//
#pragma once

#include "kernels/matmul/matmul_call.h"

namespace ds::kernels {

/// Applies the call's epilogue to the finished product, which stands in `call.product`; a worker takes some rows.
template <typename T>
void runMatmulEpilogue(const MatmulCall &call, const CallContext &context, std::span<void *const> operands) noexcept;

} // namespace ds::kernels
