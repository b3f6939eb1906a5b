//===- Flops.h - what a step computes -------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::plan {

/// Floating-point operations of one run of a kernel, with what a gradient computes again; 0 of what is no product.
double flopsOf(const proto::KernelCommand &kernel);

/// Bytes of its operands that one run of a kernel does not touch (kernels/KernelTable.h).
double untouchedBytes(const proto::KernelCommand &kernel);

/// Floating-point operations of the matrix products of one optimizer step, convolutions being some, of all stages: 2 M
/// N K each, forward and backward, times the micro-batches of a rank. Other work is not counted, as is usual for MFU.
uint64_t matmulFlopsPerStep(const proto::Plan &plan);
/// Of them, those that a rank of the role carries out.
uint64_t matmulFlopsPerStep(const proto::Plan &plan, const proto::Role &role);

/// Of them, those of products that a micro-batch has done before.
uint64_t recomputeFlopsPerStep(const proto::Plan &plan, const proto::Role &role);

} // namespace ds::plan
