//===- CombineLengths.h - plans for several sizes become one ----------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::driver {

/// One plan of plans of one model that differ in the size of a symbolic dimension alone, ascending, with state at the
/// start of each arena and constants behind it (stateFirstAttribute). It keeps state where it lies, and the constants
/// of all sizes; each arena is as large as the size that needs most, but for the others' constants. Throws ds::Error
/// where state depends on the size.
plan::proto::Plan combineLengths(const std::string &dimension, const std::vector<int64_t> &sizes,
                                 std::vector<plan::proto::Plan> plans);

} // namespace ds::driver
