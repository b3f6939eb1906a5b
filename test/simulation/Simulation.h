//===- Simulation.h - one seed: what is run, and what must come of it -----===//
#pragma once

#include "test/simulation/Cases.h"
#include "test/simulation/Faults.h"
#include "test/simulation/Scheduler.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::sim {

/// What a seed stands for.
struct Scenario {
  size_t plan = 0; ///< which of the cases
  uint64_t steps = 1;
  int workers = 1; ///< of a compute queue
  std::vector<Fault> faults;
  int stops = 0;            ///< threads that each ask twice for the run to stop, as signals do
  uint64_t stopsWithin = 0; ///< at some point among the first so many of theirs
  std::string text;         ///< for people
};

/// What came of it.
struct Verdict {
  std::string scenario; ///< what it was, for people
  std::string broken;   ///< the invariant that does not hold, in a sentence; empty: all do
  std::string error;    ///< that the run ended with
  bool stalled = false; ///< a rank was made to stand still
  Outcome outcome;
};

/// Runs seeds. The invariant: every rank ends within the simulated time that its delays and timeouts allow, with the
/// bits of a run without faults; or all ranks end with one error: the sentence of the command that was made to fail, or
/// a watchdog's that blames the one which was made to stand still.
class Simulation {
public:
  Simulation();
  Scenario scenario(uint64_t seed) const;
  Verdict run(uint64_t seed, bool log) const;

private:
  struct Reference {
    std::vector<std::vector<std::byte>> states; ///< after steps 1, 2, ...
    Visits visits;                              ///< of a run of all steps
  };
  void addFaults(Random &random, Scenario &scenario) const;
  Fault drawFault(Random &random, const Scenario &scenario, FaultKind kind) const;

  std::vector<Case> cases_;
  std::vector<Reference> references_; // by case
};

} // namespace ds::sim
