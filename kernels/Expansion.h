//===- Expansion.h - the ops that a fused kernel stands for ----------------===//
//
// Rows DS_FUSED of Kernels.inc: a call of `kernel` in which attribute `when` is on, or "name=text" has that text, or
// any where it says nothing, computes what these ops compute one after another:
//
//   DS_FUSED(matmul, "epilogue=gelu_tanh_grad", "c = matmul a b bias; slope = gelu_tanh_slope aux; c = mul c slope")
//
// An op is a kernel or an elementwise op. It takes and makes operands of the call, by the names of the row, or what an
// op before has made; those that the call does not have are left out. A kernel's attributes are the call's, without
// those that `when` names. Elementwise ops take numbers of 16 bits as float32, and what they make is rounded where it
// is an operand of the call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <span>
#include <string_view>
#include <vector>

namespace ds::kernels {

struct ExpandedOp {
  std::string_view op;
  std::vector<std::string_view> results, operands;
};

struct Expansion {
  std::string_view kernel;
  std::vector<std::string_view> attributes; ///< that the kernels among the ops do not have
  std::string_view when, text;              ///< the first of them, and the text that it has, if one is said
  std::vector<ExpandedOp> ops;
};

/// All rows DS_FUSED, in the order of Kernels.inc.
std::span<const Expansion> allExpansions();
/// The first that a call is of, or nullptr: it is one op by itself.
const Expansion *expansionOf(const Invocation &call);

} // namespace ds::kernels
