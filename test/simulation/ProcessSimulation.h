//===- ProcessSimulation.h - one seed of processes that talk by TCP -------===//
#pragma once

#include "test/simulation/Processes.h"
#include "test/simulation/Simulation.h"

#include <cstdint>

namespace ds::sim {

/// Runs seeds of the control plane by TCP. The invariant: every process ends in time, with what the exchanges should
/// bring; or, where one was in trouble, with an error that names it, or the sentence that it said.
class ProcessSimulation {
public:
  ProcessScenario scenario(uint64_t seed) const;
  Verdict run(uint64_t seed, bool log) const;
};

} // namespace ds::sim
