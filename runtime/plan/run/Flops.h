//===- Flops.h - what a step computes -------------------------------------===//
#pragma once

#include "core/CostModel.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::plan {

/// Floating-point operations of one run of a kernel, with what a gradient computes again and, as is usual,
/// with what a causal mask hides; 0 of what is no product.
double flopsOf(const proto::KernelCommand &kernel);

/// What one run of a kernel does that reads and writes `operandBytes` if it touches all of its operands.
Work workOf(const proto::KernelCommand &kernel, double operandBytes);

/// Floating-point operations of the matrix products of one optimizer step, convolutions being some, of all stages: 2 M
/// N K each, forward and backward, times the micro-batches of a rank. As is usual for MFU, other work is not counted,
/// and scores that a causal mask hides are.
uint64_t matmulFlopsPerStep(const proto::Plan &plan);
/// Of them, those that a rank of the role carries out.
uint64_t matmulFlopsPerStep(const proto::Plan &plan, const proto::Role &role);

/// Of them, those of products that a micro-batch has done before.
uint64_t recomputeFlopsPerStep(const proto::Plan &plan, const proto::Role &role);

} // namespace ds::plan
