//===- CommandWork.h - what commands do, and how long the cost model says --===//
#pragma once

#include "core/CostModel.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::plan {

/// Of the plan's machine; unknown of most.
Rates ratesOf(const proto::Plan &plan);

/// Of an operand's elements; 0 of a type that is none.
uint64_t bytesOf(const proto::Operand &operand);

/// FLOP of products, and what a command reads and writes, in bytes; of scratch what kernels/CallWork.h says.
Work workOf(const proto::Command &command);

/// Of a command of a role that is no copy between memories, by the cost model: on a queue of the host by the host's
/// rates.
double secondsOf(const proto::Plan &plan, const proto::Role &role, const proto::Command &command);

/// Commands of one kernel, or of one kind, in one run of the program `step`.
struct CommandTotals {
  std::string name; // "matmul", or "copy", "fill", "feed", "collective", "send", "receive"
  uint64_t commands = 0;
  double flops = 0, bytes = 0;
  double seconds = 0; // by the cost model, one after another
};

/// Those that take longest first.
std::vector<CommandTotals> commandsOfStep(const proto::Plan &plan, const proto::Role &role);

} // namespace ds::plan
