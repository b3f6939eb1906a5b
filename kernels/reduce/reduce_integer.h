//===- reduce_integer.h - reduce_sum and reduce_max of integers -----------===//
#pragma once

#include "kernels/reduce/reduce_call.h"

#include <memory>

namespace ds::kernels {

std::unique_ptr<Kernel> makeIntegerReduce(const ReduceCall &call);

} // namespace ds::kernels
