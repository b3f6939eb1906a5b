//===- TestKernels.h - kernels small enough to see through ----------------===//
#pragma once

#include "kernels/KernelRegistry.h"

namespace ds::test {

/// All float32 unless said otherwise; operands in brackets are scalars.
///   sum         x any shape, [y]         y = sum of x, in order
///   accumulate  x, acc rw                acc += x
///   subtract    x, p rw                  p -= x
///   context     y i64 [3]                y = seed, step, micro-batch of the call
///   spread      y i64 [n]                y[i] = i, each piece by some worker
///   wobble      (any)                    sleeps a while that depends on address and micro-batch, then nothing
///   fail        (any)                    fails: "the test asked for it"
///   poke        y                        writes far past its operand
///   nan         y                        y[1] = NaN
const kernels::KernelRegistry &testKernels();

} // namespace ds::test
