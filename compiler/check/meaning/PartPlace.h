//===- PartPlace.h - kernels that say where a rank's part begins -----------===//
//
// A kernel that goes by where elements lie, as one that draws a number for each, has attributes `whole` and `first`:
// the sizes of the whole and where the part begins, with steps that ranks add.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/check/meaning/Spread.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <span>

namespace ds::check {

/// The steps, not all 0, by which ranks along an axis say where their parts begin; null where there are none.
const proto::RankSteps *stepsAlong(const proto::Plan &plan, const proto::KernelCommand &kernel, uint32_t axis);

/// Takes out what the `entry`-th number of `first` says of an axis. False where it does not say that ranks have the
/// parts of a cut.
bool takeOutPlace(const proto::Plan &plan, proto::KernelCommand &kernel, uint32_t axis, int entry, const Cut &cut);

/// Of a command that is the whole one, of these sizes, where it begins goes without saying.
void clearPlace(proto::KernelCommand &kernel, std::span<const int64_t> sizes);

} // namespace ds::check
