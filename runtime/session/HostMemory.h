//===- HostMemory.h - what other processes of this host will use ----------===//
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::runtime {

/// Main memory that the arenas of ranks in other processes of this host need, those of lower ranks than this process's
/// first: each process counts those before it, so that together they count all. Every process calls it, before any
/// touches its arenas.
uint64_t promisedByOthers(const plan::proto::Plan &plan, Transport &transport);

} // namespace ds::runtime
