//===- StepTime.h - how long a step of a plan takes, by the clock of reports --===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <optional>

namespace ds::driver {

/// Of the rank whose step is longest, in seconds.
struct StepTime {
  double step = 0, waits = 0; // waits: for transfers
};

/// Nothing where the machine of the plan does not say how fast a link is that it uses.
std::optional<StepTime> stepTime(const plan::proto::Plan &plan);

} // namespace ds::driver
