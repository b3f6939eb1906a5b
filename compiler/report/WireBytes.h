//===- WireBytes.h - what a rank hands to the network in a step ------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::report {

/// Bytes that one rank sends in one run of the program `step`, and receives in messages.
struct WireBytes {
  uint64_t allGather = 0, reduceScatter = 0, allReduce = 0, broadcast = 0, allToAll = 0, send = 0;
  uint64_t receive = 0;
  uint64_t sum() const { return allGather + reduceScatter + allReduce + broadcast + allToAll + send; }
};

/// Counted from the collectives and messages of a plan that validatePlan() accepts, message by message as communicators
/// send them: n ranks pass on (n - 1) / n of what is gathered or scattered, twice that of what is all-reduced.
WireBytes wireBytesPerStep(const plan::proto::Plan &plan, const plan::proto::Role &role, uint64_t rank);

} // namespace ds::report
