//===- Ending.h - how a run is asked to end, and is made to ---------------===//
#pragma once

#include <atomic>
#include <chrono>
#include <string>

namespace ds::runtime {
class FlightRecorder;
}

namespace ds::run {

/// From now on SIGINT, SIGTERM and SIGUSR1 end the process at once, after a sentence: while plan, data and weights are
/// loaded nothing has been written that could be lost.
void endOnSignals();

/// From now on they set the flag that is returned, and the run ends at the next place where it can. A second SIGINT or
/// SIGTERM, of either kind, ends the process at once.
const std::atomic<bool> &askToEndOnSignals();

/// From now on SIGUSR2 asks the recorder to write, and the run goes on; for as long as the recorder lives.
void recordOnSignal(runtime::FlightRecorder &recorder);

/// Ends the process by force, with an error and exit code 1, if it is still there then. For what may hang after a
/// failure: a file on a dead mount, a library that waits for a rank that is gone.
void endWithin(std::chrono::seconds limit, const std::string &error);

} // namespace ds::run
