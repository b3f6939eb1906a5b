//===- elementwise_bfloat16.h - programs on bfloat16 ----------------------===//
#pragma once

#include "kernels/elementwise/elementwise_call.h"

namespace ds::kernels {

/// The same call, computing with float32: registers of bfloat16 are only loaded, cast from and to float32, copied and
/// selected. Each result of arithmetic is rounded by a cast, so no bit changes.
Invocation widenProgram(const Invocation &invocation, const ElementwiseCall &call);

} // namespace ds::kernels
