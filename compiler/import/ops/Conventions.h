//===- Conventions.h - PyTorch's gradients where the formula has none or several ---------------===//
#pragma once

#include "compiler/import/Hazards.h"
#include "compiler/import/ops/Algebra.h"

namespace ds::import {

/// x <= y
inline Value lessEqual(Node &node, const Value &x, const Value &y) {
  return binary<train::LessEqualOp>(node, BinaryFold::LessEqual, x, y);
}

/// function(x), whose gradient is infinite at 0; there it is 0, and so is function(x).
template <typename Function> Value orZero(Node &node, const Value &x, Function function) {
  const Algebra math(node);
  const Value isZero = math.equal(x, 0);
  return math.choose(isZero, 0, function(math.choose(isZero, 1, x)));
}

} // namespace ds::import
