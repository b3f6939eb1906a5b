//===- TransferBytes.h - what a rank copies between memories in a step -----===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::report {

/// Bytes that one rank copies in one run of the program `step`: out of device memory, and back into it.
struct TransferBytes {
  uint64_t out = 0, back = 0;
};

/// Counted from the copies of a plan that validatePlan() accepts.
TransferBytes transferBytesPerStep(const plan::proto::Role &role);

} // namespace ds::report
