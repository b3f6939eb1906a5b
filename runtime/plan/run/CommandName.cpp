//===- CommandName.cpp - commands in the user's names ---------------------===//
#include "runtime/plan/run/CommandName.h"

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace ds::plan {

std::string commandName(const proto::Plan &plan, const proto::Role &role, uint32_t routine, uint32_t index) {
  const proto::Command &command = role.routines(int(routine)).commands(int(index));
  for (uint32_t op : command.reference())
    if (const std::string &name = plan.reference().ops(int(op)).name(); !name.empty())
      return command.reference_size() > 1 ? name + " and " + std::to_string(command.reference_size() - 1) + " more"
                                          : name;
  return "routine " + role.routines(int(routine)).name() + ", command " + std::to_string(index);
}

} // namespace ds::plan
