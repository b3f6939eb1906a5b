//===- Fragmentation.h - bytes of an arena that hold nothing at the peak --===//
#pragma once

#include "compiler/report/PeakMemory.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string_view>

namespace ds::report {

/// Why an arena is larger than the bytes alive when most are; counted from the addresses that the plan gives.
struct Fragmentation {
  uint64_t messageSlots = 0; // slots that the next message of another stage may fill, or the last one still leaves
  uint64_t idleSlots = 0;    // other slots kept for micro-batches that are not under way just then
  uint64_t alignment = 0;    // between the end of a live buffer and the next aligned address
  uint64_t gaps = 0;         // the rest: room that other times need
};

/// Of a space, at the peak that measure() found.
Fragmentation fragmentationAtPeak(const plan::proto::Plan &plan, const plan::proto::Role &role, std::string_view space,
                                  const SpaceMemory &memory);

} // namespace ds::report
