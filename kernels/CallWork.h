//===- CallWork.h - what a call does, for the cost model ------------------===//
#pragma once

#include "core/CostModel.h"
#include "kernels/KernelTable.h"

#include <string>

namespace ds::kernels {

/// `operandBytes`: what the call reads and writes if it touches all of its operands. Products are of numbers of `bits`.
Work workOf(const KernelRow &row, const CallTypes &call, double operandBytes, unsigned bits, bool tf32);

/// Why our own kernel runs attention in 16 bits on a GPU, where cuDNN does not take the call; "" where it does.
std::string whyPlainAttention(std::string_view kernel, const CallTypes &call);

} // namespace ds::kernels
