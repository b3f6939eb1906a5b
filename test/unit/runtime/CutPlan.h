//===- CutPlan.h - a parameter that tensor ranks share, by hand -------------===//
#pragma once

#include "test/unit/runtime/PlanBuilder.h"

#include <cstdint>
#include <string>

namespace ds::test {

/// How `tensorRanks` ranks share w [4, 6]: by dimension `dim`, of `runs` runs end to end.
struct Cut {
  uint32_t tensorRanks = 1;
  uint32_t dim = 0;
  uint32_t runs = 1;
};

/// SGD with momentum on parameter w: its gradient is x, a sample of the data, summed over two ranks along axis data.
/// Ranks along axis tensor, if there are several, have pieces of w and of its momentum.
PlanBuilder cutPlan(const Cut &cut);

/// Writes a model's file of w, numbers that differ, and names it as the plan's source of w.
void takeFromFile(PlanBuilder &builder, const std::string &folder);

/// Writes 24 samples of x.
void writeCutData(const std::string &path);

} // namespace ds::test
