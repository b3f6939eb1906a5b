//===- CommandName.h - commands by place and in the user's names ----------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace ds::plan {

/// One command of one call of a program. A command that stands in several calls has several places.
struct CommandPlace {
  uint32_t role = 0;
  std::string program = {};
  uint32_t call = 0;    ///< of the program
  uint32_t command = 0; ///< of the call's routine
};

/// The reference ops that a command implements, or where it stands in the plan.
std::string commandName(const proto::Plan &plan, const proto::Role &role, uint32_t routine, uint32_t index);

} // namespace ds::plan
