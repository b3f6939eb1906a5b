//===- FaultyMover.h - faults within collectives and messages -------------===//
#pragma once

#include "runtime/comm/inprocess/ByteMover.h"

namespace ds::sim {

/// HostMover, with places for faults before what it does.
std::unique_ptr<runtime::ByteMover> makeFaultyMover(uint32_t rank);

} // namespace ds::sim
