//===- MovedBytes.h - bytes moved beside the least that any schedule could move ---===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>

namespace ds::report {

/// Between device and host memory, of one rank of a role in one step. docs/offload.md says what the least is of.
struct MovedBytes {
  uint64_t room = 0;   // of device memory: the machine's less its reserve, or the arena where that is unknown
  uint64_t moved = 0;  // out and back
  uint64_t least = 0;  // of any schedule
  uint64_t forced = 0; // of the least, what moves whatever the room

  bool operator==(const MovedBytes &) const = default;
};

/// Of a role that moves anything or would have to; nothing also where its commands fit into no such memory.
std::optional<MovedBytes> movedBytes(const plan::proto::Plan &plan, const plan::proto::Role &role);

} // namespace ds::report
