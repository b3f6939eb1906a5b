//===- CommandTimes.h - what commands do, and how long the cost model says --===//
#pragma once

#include "compiler/report/Table.h"
#include "core/CostModel.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::report {

/// Of the plan's machine; unknown of most.
Rates ratesOf(const plan::proto::Plan &plan);

/// FLOP of products, and what a command reads and writes, in bytes; scratch does not count.
Work workOf(const plan::proto::Command &command);

/// Commands of one kernel, or of one kind, in one run of the program `step`.
struct CommandTotals {
  std::string name; // "matmul", or "copy", "fill", "feed", "collective", "send", "receive"
  uint64_t commands = 0;
  double flops = 0, bytes = 0;
  double seconds = 0; // by the cost model, one after another
};

/// Those that take longest first.
std::vector<CommandTotals> commandsOfStep(const plan::proto::Plan &plan, const plan::proto::Role &role);

/// The role whose commands take longest, one after another.
const plan::proto::Role &slowestRole(const plan::proto::Plan &plan);
/// A line a kernel and one of their sums; seconds where the machine has rates.
Table commandTable(const plan::proto::Plan &plan, const plan::proto::Role &role);

} // namespace ds::report
