//===- StepClock.h - when each command of a step runs, on a simulated clock --===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <functional>
#include <span>
#include <vector>

namespace ds::plan {

/// One execution of one command. Times are seconds from the start of the step.
struct TimedCommand {
  const proto::Command *command = nullptr;
  int call = 0, index = 0; // of the program; of the call's routine
  double start = 0, end = 0;
  double latestEnd = 0; // if it ends by then, and all others take as long as they do, the step is no longer
};

/// How long a command runs once it has started; `start` and `end` are not known yet.
using SecondsOf = std::function<double(const TimedCommand &)>;

/// The program `step` of a role, in the order in which commands start: each as soon as the one before it on its queue
/// has ended and the events that it waits for are raised. Other roles are always there in time. Wants a plan that
/// validatePlan() accepts, and as the plan's role is alone, every command comes to run.
std::vector<TimedCommand> timeStep(const proto::Role &role, const SecondsOf &secondsOf);

/// When the last command ends.
double lastEnd(std::span<const TimedCommand> commands);

} // namespace ds::plan
