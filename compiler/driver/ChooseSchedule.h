//===- ChooseSchedule.h - in which order micro-batches go through the model ---===//
#pragma once

#include "compiler/driver/TryPlan.h"

namespace ds::driver {

/// What deepstatic.pipeline.schedule "auto" stands for, of one stage with several micro-batches: the plan whose step is
/// shortest by the clock of reports (runtime/plan/run/StepClock.h), of one micro-batch after another (1f1b) and
/// accumulate-by-layer. A plan for which there is no memory is not taken where there is for the other, nor one by layer
/// whose gain is below a hundredth of the step or cannot be known. `compileOne` plans a request and throws ds::Error.
CompileResult compileShortest(const CompileRequest &request, const Planner &compileOne);

} // namespace ds::driver
