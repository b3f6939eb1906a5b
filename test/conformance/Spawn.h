//===- Spawn.h - a test's body on every rank ------------------------------===//
#pragma once

#include "runtime/comm/Transport.h"

#include <cstdint>
#include <functional>

namespace ds::test {

using RankBody = std::function<void(runtime::Transport &, uint32_t rank)>;

/// Most ranks that spawn can make: 8 threads, or as many processes as mpirun has started.
uint32_t mostRanks();

/// Runs the body on ranks 0 to n - 1: threads of this process or, under mpirun, the processes with those ranks. Returns
/// when all have; the first exception stops all ranks and is thrown again.
void spawn(uint32_t n, const RankBody &body);

} // namespace ds::test
