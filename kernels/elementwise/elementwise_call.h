//===- elementwise_call.h - the call of elementwise: a checked program ---===//
#pragma once

#include "kernels/Call.h"
#include "kernels/ElementwiseProgram.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace ds::kernels {

struct ElementwiseInstruction {
  ElementwiseOp op;
  DType type;                 ///< of the result
  std::array<int, 3> sources; ///< registers; -1 where the opcode reads none
  double constant;            ///< of Constant
};

struct ElementwiseCall {
  explicit ElementwiseCall(const Call &call);

  size_t inputs = 0;
  Shape shape;                    ///< of every result
  int64_t elements = 0;           ///< of every result
  std::vector<Shape> inputShapes; ///< broadcast to `shape`
  std::vector<ElementwiseInstruction> program;
  std::vector<int> results; ///< one register per result
  std::vector<DType> types; ///< of every register: inputs, then instructions

private:
  void readProgram(const Call &call);
  void checkTypes(const Call &call, size_t index, const ElementwiseInstruction &instruction) const;
};

/// Whether any register is a float of 16 bits.
inline bool usesNarrowFloat(const ElementwiseCall &call) {
  return std::any_of(call.types.begin(), call.types.end(), isNarrowFloat);
}

/// Strides in elements, by dimension of `to`, of a tensor of shape `from` that is broadcast to it.
std::array<int64_t, maxRank> broadcastStrides(const Shape &from, const Shape &to);

} // namespace ds::kernels
