//===- MetricRules.h - a metric is the scalar that it is called after -----===//
#pragma once

#include "compiler/check/RankMemory.h"

namespace ds::check {

/// A metric is read from where its value lies at the end of the run: what the reference program leaves in the variable
/// of its name, in an evaluation the mean of the ranks' parts. Rank 0, whose metrics ds-run shows, has all that the
/// reference program yields. Refuses ("meaning", "value") others.
void requireMetrics(RankMemory &memory);

} // namespace ds::check
