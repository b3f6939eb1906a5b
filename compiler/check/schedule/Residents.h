//===- Residents.h - what outlives a run has bytes of its own -------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// A buffer of scope PLAN is alive always, so no other buffer that a command uses may take bytes of it, in any slot.
/// Looked at in the whole plan, not in the run that is played, which may leave late slots out. Refuses ("memory")
/// others.
void checkResidents(const proto::Role &role);

} // namespace ds::check
