//===- Cases.h - the small plans that are simulated -----------------------===//
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ds::sim {

/// A plan with its data and first values, which runs share.
struct Case {
  std::string name; ///< "sharded, 4 ranks, 2 micro-batches"
  plan::proto::Plan plan;
  std::unique_ptr<runtime::Dataset> data;
  std::unique_ptr<runtime::VariableSources> sources;
  uint32_t ranks = 0;
};

/// ShardedPlan on 2 to 8 ranks (collectives on a queue of their own, waits across micro-batches, data from the host)
/// and PipelinePlan on 2 to 6 (messages between two stages, four queues a rank, two communicators).
std::vector<Case> makeCases();

} // namespace ds::sim
