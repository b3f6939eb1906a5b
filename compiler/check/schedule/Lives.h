//===- Lives.h - no two live buffers share bytes --------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// Refuses ("memory") buffers whose bytes meet while both are alive in a run of a program, an index of Role.programs.
/// Lives are laid out on the order in which commands are issued; FORMAT.md says how a life unfolds over the calls.
void checkLives(const proto::Role &role, int program);

} // namespace ds::check
