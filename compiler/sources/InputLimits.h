//===- InputLimits.h - which values an integer input may hold -------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::sources {

/// That a plan refuses the values of an input for which its reference program has no meaning, and ignores the label
/// that its loss ignores. Throws ds::Error.
void requireLimit(const plan::proto::Plan &plan, const plan::proto::Input &input);

} // namespace ds::sources
