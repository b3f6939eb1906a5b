//===- Traffic.h - bytes between a rank and others ------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <cstddef>
#include <cstdint>

namespace ds::runtime {

/// Bytes that went between this rank and others.
struct Traffic {
  WireBytes collectives{};         ///< handed to others
  uint64_t sent = 0, received = 0; ///< in messages
};

/// What happened between two looks at what only grows.
inline Traffic operator-(Traffic later, const Traffic &earlier) {
  for (size_t kind = 0; kind < later.collectives.size(); ++kind)
    later.collectives[kind] -= earlier.collectives[kind];
  return {later.collectives, later.sent - earlier.sent, later.received - earlier.received};
}

} // namespace ds::runtime
