//===- CommandName.h - commands in the user's names -----------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace ds::plan {

/// The reference ops that a command implements, or where it stands in the plan.
std::string commandName(const proto::Plan &plan, const proto::Role &role, uint32_t routine, uint32_t index);

} // namespace ds::plan
