//===- TailPlan.h - a plan whose update may have to be made again ---------===//
#pragma once

#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <string>

namespace ds::test {

/// Elements of the parameter and of its moment.
inline constexpr int64_t tailElements = 3000;

/// Parameter p (variable 0) is whole on every rank; its moment m (variable 1) lies in a file, with a place for the next
/// one. A step of the kernels of TestKernels.h takes one sample of one float on each rank; their sum is its loss.
///
///   begin     sample, own = its sum
///   update    near = m + 1, next m = near, kept = p, p -= near
///   finish    loss = the sum of own over the ranks
///   again     the tail, where the loss is not 1: near = m + 10, next m = near, p = kept, p -= near
///
/// `evaluate` is begin and finish.
PlanBuilder tailPlan(uint32_t ranks);

/// The same with a tail that fails.
PlanBuilder failingTailPlan(uint32_t ranks);

/// ShardedPlan with a tail that zeroes sums: a seed for fuzzers, whose kernels are not those of tests.
PlanBuilder shardedTailPlan();

} // namespace ds::test
