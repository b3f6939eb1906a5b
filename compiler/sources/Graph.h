//===- Graph.h - whether a plan's reference program is its model's --------===//
#pragma once

#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

namespace ds::sources {

/// That the plan's reference program is `program`, which was made from model and configuration again: op by op, with
/// operands, attributes and the variables that each reads or writes. Throws ds::Error, which names the first op that
/// differs.
Claim requireGraph(const plan::proto::Plan &plan, const plan::proto::Plan &program);

} // namespace ds::sources
