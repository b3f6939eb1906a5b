//===- CodeRules.h - kernels that a plan carries do what their commands say ---===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// Every code that a command names is PTX that computes the command's program. It is run by an emulator (kernels/ptx)
/// on drawn values, and the bits of each element that it writes are those that the kernel's own interpreter makes of
/// the same inputs, with exp, tanh and the like as elementwise_functions.h says. Small kernels run whole; of larger
/// ones run the first and last blocks and some that are drawn, which must write what their place in the grid says.
/// Throws Mismatch, with the place.
void requireCodes(const proto::Plan &plan);

} // namespace ds::check
