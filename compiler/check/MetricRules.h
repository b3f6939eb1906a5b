//===- MetricRules.h - a metric is the scalar that it is called after -----===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "runtime/plan/plan.pb.h"

namespace ds::check {

/// A metric is read from where its value lies at the end of the run: what the reference program leaves in the variable
/// of its name, in an evaluation the mean of the ranks' parts. Refuses ("meaning", "value") others.
void requireMetric(RankMemory &memory, const proto::Metric &metric);

} // namespace ds::check
