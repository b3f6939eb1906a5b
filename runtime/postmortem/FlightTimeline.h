//===- FlightTimeline.h - the last commands of all ranks as a timeline ----===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/Records.h"

#include <string>

namespace ds::runtime {

/// A file as --trace writes, of what the records still have. What had not ended lasts until its record was written.
/// Times are rank 0's.
std::string flightTimeline(const plan::proto::Plan &plan, const Records &records);

} // namespace ds::runtime
