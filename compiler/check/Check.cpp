//===- Check.cpp - the rules, in the order in which they build on each other -===//
#include "compiler/check/Check.h"

#include "compiler/check/Layout.h"
#include "compiler/check/Lives.h"
#include "compiler/check/Meaning.h"
#include "compiler/check/Refusal.h"
#include "compiler/check/Replay.h"
#include "compiler/check/Timeline.h"

#include <set>

namespace ds::check {

namespace {

void checkMemory(const proto::Plan &plan, const proto::Role &role) {
  const proto::Machine &machine = plan.machine();
  for (auto [space, room] : {std::pair{"device", machine.device_memory()}, std::pair{"host", machine.host_memory()}}) {
    uint64_t needed = std::string(space) == "device" ? machine.reserve() : 0;
    for (const proto::Arena &arena : role.arenas())
      needed += arena.space() == space ? arena.bytes() : 0;
    if (room > 0 && needed > room)
      throw Refusal{"memory", "role " + role.name() + " needs " + std::to_string(needed) + " bytes of " + space +
                                  " memory; machine " + machine.name() + " has " + std::to_string(room)};
  }
}

} // namespace

std::optional<Finding> checkPlan(const proto::Plan &plan) {
  try {
    std::set<std::string> programs;
    for (const proto::Role &role : plan.roles()) {
      checkMemory(plan, role);
      checkPlaces(plan, role);
      for (const proto::Program &program : role.programs())
        programs.insert(program.name());
    }
    Meaning meaning(plan);
    for (const std::string &name : programs) {
      const std::vector<Timeline> timelines = playProgram(plan, name);
      for (int r = 0; r < plan.roles_size(); ++r)
        for (const proto::Program &program : plan.roles(r).programs())
          if (program.name() == name) {
            replay(plan, meaning, plan.roles(r), program, timelines[size_t(r)]);
            checkLives(plan.roles(r), program);
          }
    }
    return std::nullopt;
  } catch (const Refusal &refusal) {
    return Finding{refusal.rule, refusal.sentence};
  }
}

} // namespace ds::check
