//===- ShardedPlan.h - a plan as ZeRO 2 makes it, by hand -----------------===//
#pragma once

#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <string>

namespace ds::test {

/// SGD with momentum on parameters a [3] (random) and c [2] in a bucket that is whole on every rank; the momentum in
/// shards; the gradient of a micro-batch is its sample x [1, 5]; collectives on a queue of their own:
///
///   begin     0 compute  fill owned           1 compute  fill loss
///   forward   0 compute  feed x               1 fill g (when the reduction of m - 1 has read it)
///             2 compute  g[0:3] = x[0:3]      3 g[4:6] = x[3:5]      4 sum = sum of x (signals written)
///             5 comm     owned += reduce_scatter g                   6 loss += all_reduce sum (signals reduced)
///   update    0 compute  sgd own slice of p, owned, moments          1 comm  all_gather p in place
///
/// The same samples give the same bits, however they are split into ranks and accumulation steps.
PlanBuilder shardedPlan(uint32_t ranks, uint64_t accumulation);

/// 24 samples for it.
void writeShardedData(const std::string &path);

/// One that fails on rank 1: its values must be below 10, and sample 1 of writeBadShardedData has an 11.
PlanBuilder failingShardedPlan(uint32_t ranks, uint64_t accumulation);
void writeBadShardedData(const std::string &path);

} // namespace ds::test
