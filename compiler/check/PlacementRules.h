//===- PlacementRules.h - what ranks have of variables fits together ------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// What the plan says that ranks have of variables between two steps. Refuses ("meaning", "coverage") what the
/// reference program does not make, what no samples are dealt out along, and a parameter whose gradient and state lie
/// elsewhere.
void checkPlacements(const proto::Plan &plan);

} // namespace ds::check
