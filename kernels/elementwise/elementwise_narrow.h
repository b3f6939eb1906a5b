//===- elementwise_narrow.h - programs on floats of 16 bits ---------------===//
#pragma once

#include "kernels/elementwise/elementwise_call.h"

namespace ds::kernels {

/// The same call, computing with float32: registers of 16 bits are only loaded, cast from and to float32, copied and
/// selected. Each result of arithmetic is rounded by a cast, so no bit changes.
Invocation widenProgram(const Invocation &invocation, const ElementwiseCall &call);

} // namespace ds::kernels
