//===- PipelineReference.h - what PipelinePlan's commands implement -------===//
#pragma once

#include "test/unit/runtime/PlanBuilder.h"

namespace ds::test {

/// Adds the single-device program to pipelinePlan's plan, and to each command what it implements of it.
void describePipeline(PlanBuilder &b);

} // namespace ds::test
