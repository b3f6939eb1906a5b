//===- StepReport.h - what a run tells about itself -----------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/executor/Scalar.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ds::runtime {

/// One optimizer step; metrics that the plan does not compute are empty.
struct StepReport {
  uint64_t step = 0; ///< counts from 1
  std::optional<Scalar> loss, gradientNorm, learningRate;
  double seconds = 0;
  double samplesPerSecond = 0;
};

/// One pass over the evaluation data.
struct EvaluationReport {
  uint64_t step = 0; ///< optimizer steps done before
  std::optional<Scalar> loss;
};

/// Bytes that went between this rank and others.
struct Traffic {
  WireBytes collectives{};         ///< handed to others
  uint64_t sent = 0, received = 0; ///< in messages
};

/// What happened between two looks at what only grows.
inline Traffic operator-(Traffic later, const Traffic &earlier) {
  for (size_t kind = 0; kind < later.collectives.size(); ++kind)
    later.collectives[kind] -= earlier.collectives[kind];
  return {later.collectives, later.sent - earlier.sent, later.received - earlier.received};
}

/// What a rank used, counted by its allocators and by the system.
struct SummaryReport {
  uint32_t rank = 0;
  uint64_t deviceBytes = 0;
  uint64_t deviceTouchedBytes = 0; ///< in pages of device arenas that were ever touched
  uint64_t hostBytes = 0;
  uint64_t nvmeBytes = 0;
  Traffic trafficPerStep;              ///< of the last step
  uint64_t anonymousResidentBytes = 0; ///< of its process, which may have other ranks too
};

} // namespace ds::runtime
