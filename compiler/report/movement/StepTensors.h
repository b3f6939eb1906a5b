//===- StepTensors.h - the tensors of a step, wherever they lie -------------===//
#pragma once

#include "compiler/scheduling/TensorUses.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace ds::report {

/// What one run of the program `step` uses of device memory. A moment is a command of a queue of kind compute. A tensor
/// goes from buffer to buffer by copies between memories; where commands use parts of a buffer, each part is one.
struct StepTensors {
  std::vector<scheduling::UsedTensor> tensors;
  std::vector<int64_t> used; // bytes of device memory that a command touches, by moment
};

/// Of the first rank of a role, in a plan that validatePlan() accepts.
StepTensors stepTensors(const plan::proto::Plan &plan, const plan::proto::Role &role);

} // namespace ds::report
