//===- HostMemory.h - main memory that is spoken for ----------------------===//
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::runtime {

/// Main memory that is spoken for beside the arenas of this process: the arenas and, if `saves`, checkpoint buffers of
/// ranks in other processes of this host, those of lower ranks than this process's first, and its own ranks' buffers.
/// Each process counts those before it, so that together they count all. Every process calls it, before any touches its
/// arenas.
uint64_t promisedBytes(const plan::proto::Plan &plan, Transport &transport, bool saves);

} // namespace ds::runtime
