//===- StepTime.cpp - how long a step of a plan takes, by the clock of reports -===//
#include "compiler/driver/StepTime.h"

#include "compiler/report/Transfers.h"
#include "runtime/plan/run/StepClock.h"

using namespace ds;

std::optional<driver::StepTime> ds::driver::stepTime(const plan::proto::Plan &plan) {
  if (!report::unknownLink(plan).empty())
    return std::nullopt;
  StepTime longest;
  for (const plan::proto::Role &role : plan.roles()) {
    const auto times = report::transferTimes(plan, role);
    const double step = times ? times->step : plan::lastEnd(report::timeStep(plan, role));
    if (step > longest.step)
      longest = {step, times ? times->exposed() : 0};
  }
  return longest;
}
