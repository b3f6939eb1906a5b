//===- Lives.h - no two live buffers share bytes --------------------------===//
#pragma once

#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::check {

/// Refuses ("memory") buffers whose bytes meet while both are alive in a run of program `name`, on any role. One of
/// scope PLAN is alive always. Lives are laid out on the order in which commands are issued; FORMAT.md says how a life
/// unfolds over the calls. Refuses ("race") a life that may begin before another one of the same bytes has ended, on
/// another queue.
void checkLives(const proto::Plan &plan, const std::string &name, const JointTimeline &joint);

} // namespace ds::check
