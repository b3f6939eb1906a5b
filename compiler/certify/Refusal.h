//===- Refusal.h - whether a plan is refused by itself ---------------------===//
#pragma once

#include "compiler/check/Check.h"
#include "runtime/plan/plan.pb.h"

#include <optional>

namespace ds::certify {

/// Finds the first rule that a plan breaks, without a look at its sources: that its commands are its reference program
/// (check::checkPlan), and that this one is guarded where it computes in float16. `plan` has passed plan::validatePlan.
std::optional<check::Finding> refusalOf(const plan::proto::Plan &plan, check::Unknown *unknown = nullptr);

} // namespace ds::certify
