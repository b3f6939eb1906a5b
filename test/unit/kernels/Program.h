//===- Program.h - elementwise programs under construction ----------------===//
#pragma once

#include "kernels/ElementwiseProgram.h"
#include "test/unit/kernels/Harness.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ds::kernels::test {

using Op = ElementwiseOp;

/// A program under construction.
struct Program {
  int inputs;
  std::vector<int64_t> code = {};
  std::vector<double> constants = {};
  std::vector<int64_t> results = {};

  int64_t add(Op op, DType type, int64_t a = -1, int64_t b = -1, int64_t c = -1) {
    code.insert(code.end(), {int64_t(op), int64_t(type), a, b, c});
    return inputs + int64_t(code.size() / 5) - 1;
  }
  int64_t constant(DType type, double value) {
    constants.push_back(value);
    return add(Op::Constant, type, int64_t(constants.size()) - 1);
  }
  Attributes attributes() const { return {{"program", code}, {"constants", constants}, {"results", results}}; }
};

/// The shape that both broadcast to, as in NumPy.
inline std::optional<Shape> broadcast(const Shape &a, const Shape &b) {
  Shape out;
  const size_t rank = std::max(a.size(), b.size());
  for (size_t d = 0; d < rank; ++d) {
    const int64_t x = d + a.size() < rank ? 1 : a[d + a.size() - rank];
    const int64_t y = d + b.size() < rank ? 1 : b[d + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    out.push_back(std::max(x, y));
  }
  return out;
}

/// Runs `program` on `inputs` and compares; the results have shape `shape` and the given types.
inline std::vector<Buffer> check(std::vector<Buffer> inputs, const Program &program, const std::vector<DType> &types,
                                 const Shape &shape, Tolerance tolerance) {
  std::vector<size_t> outputs;
  for (DType dtype : types) {
    outputs.push_back(inputs.size());
    inputs.emplace_back(type(dtype, shape));
  }
  return expectMatchesReference("elementwise", std::move(inputs), program.attributes(), outputs, tolerance);
}

} // namespace ds::kernels::test
