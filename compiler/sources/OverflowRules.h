//===- OverflowRules.h - float16 steps that overflow change nothing -------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::sources {

/// Where the reference program computes in float16: updates are guarded by the norm of all gradients. Commands compute
/// what the reference program says on every rank, so every rank leaves out the same steps. Throws ds::Error.
void requireOverflowGuards(const plan::proto::Plan &plan);

} // namespace ds::sources
