//===- WireBytes.h - what a rank hands to the network in a step ------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <string>

namespace ds::report {

/// Bytes that one rank sends in one run of the program `step`, and receives in messages.
struct WireBytes {
  uint64_t allGather = 0, reduceScatter = 0, allReduce = 0, broadcast = 0, allToAll = 0, send = 0;
  uint64_t receive = 0;
  std::map<std::string, uint64_t> byAxes =
      {}; ///< what is sent, by the axes of the mesh along which: "data", "pipe x data"
  uint64_t sum() const { return allGather + reduceScatter + allReduce + broadcast + allToAll + send; }
};

/// Counted from the collectives and messages of a plan that validatePlan() accepts, message by message as communicators
/// send them: n ranks pass on (n - 1) / n of what is gathered or scattered, twice that of what is all-reduced.
WireBytes wireBytesPerStep(const plan::proto::Plan &plan, const plan::proto::Role &role, uint64_t rank);

} // namespace ds::report
