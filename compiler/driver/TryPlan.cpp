//===- TryPlan.cpp - a plan made to be compared with others ---------------===//
#include "compiler/driver/TryPlan.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace ds;
using namespace ds::driver;

static bool fits(const plan::proto::Plan &plan) {
  const plan::proto::Machine &machine = plan.machine();
  return std::ranges::all_of(plan.roles(), [&](const plan::proto::Role &role) {
    uint64_t device = machine.reserve(), host = 0;
    for (const plan::proto::Arena &arena : role.arenas()) {
      device += arena.space() == "device" ? arena.bytes() : 0;
      host += arena.space() == "host" ? arena.bytes() : 0;
    }
    return (machine.device_memory() == 0 || device <= machine.device_memory()) &&
           (machine.host_memory() == 0 || host <= machine.host_memory());
  });
}

TriedPlan ds::driver::tryPlan(CompileRequest request, const Planner &plan) {
  request.emit = Emit::PlanFile;
  TriedPlan tried{.result = plan(request), .time = {}};
  tried.time = stepTime(tried.result.plan);
  tried.fits = fits(tried.result.plan);
  return tried;
}

std::string ds::driver::percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }
