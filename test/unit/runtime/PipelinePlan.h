//===- PipelinePlan.h - two stages of a pipeline, by hand -----------------===//
#pragma once

#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>

namespace ds::test {

/// SGD on y = sum((x a) c) with x [1, 5] (as ShardedPlan's data), a [5, 3] and c [3, 2], `microbatches` a step on each
/// of `dataRanks`, cut behind x a: stage 0 is ranks 0 to d - 1, stage 1 the next d, each with queues in an order of its
/// own.
///
///   stage 0   forward   h = x a (two slots), sent on channel "forward"
///             receive   the gradient of h (two slots), from channel "backward"
///             backward  x^T dh, summed over the data ranks onto a's gradient
///   stage 1   receive   h; forward  y, onto the loss; backward  h^T dy onto c's gradient, dy c^T sent
///   update    both stages all-gather their part of the norm along the pipe; sgd; stage 1 sends the loss to stage 0
///
/// The schedule is 1F1B, receives are called one micro-batch ahead.
PlanBuilder pipelinePlan(uint32_t microbatches, uint32_t dataRanks = 1);

/// The same arithmetic on one rank.
PlanBuilder wholePlan(uint32_t microbatches);

/// One that fails on stage 0 in the second micro-batch (ShardedPlan's bad data).
PlanBuilder failingPipelinePlan(uint32_t microbatches);

} // namespace ds::test
