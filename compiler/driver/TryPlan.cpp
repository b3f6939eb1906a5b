//===- TryPlan.cpp - a plan made to be compared with others ---------------===//
#include "compiler/driver/TryPlan.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

using namespace ds;
using namespace ds::driver;

/// Whether every role's arenas in `space`, beside `reserve` bytes, are within `memory`; 0 bytes of it are unknown.
static bool fits(const plan::proto::Plan &plan, std::string_view space, uint64_t reserve, uint64_t memory) {
  return memory == 0 || std::ranges::all_of(plan.roles(), [&](const plan::proto::Role &role) {
           uint64_t bytes = reserve;
           for (const plan::proto::Arena &arena : role.arenas())
             bytes += arena.space() == space ? arena.bytes() : 0;
           return bytes <= memory;
         });
}

TriedPlan ds::driver::tryPlan(CompileRequest request, const Planner &plan) {
  request.emit = Emit::PlanFile;
  TriedPlan tried{.result = plan(request), .time = {}};
  tried.time = stepTime(tried.result.plan);
  const plan::proto::Machine &machine = tried.result.plan.machine();
  tried.fitsDevice = fits(tried.result.plan, "device", machine.reserve(), machine.device_memory());
  tried.fits = tried.fitsDevice && fits(tried.result.plan, "host", 0, machine.host_memory());
  return tried;
}

std::string ds::driver::percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }
