//===- pool_call.h - the calls of max_pool, average_pool and their gradients --===//
#pragma once

#include "kernels/conv/window_call.h"

namespace ds::kernels {

/// x [planes, in...] and y [planes, out...]: two leading dimensions, samples and channels, are one here.
struct PoolCall {
  /// `operands` of them; x and y are two.
  PoolCall(const Call &call, size_t operands, size_t x, size_t y) {
    call.expectOperands(operands);
    call.expectFloat(x);
    dtype = call.dtype(x);
    const Shape &xs = call.shape(x), &ys = call.shape(y);
    for (size_t operand = 0; operand < operands; ++operand) {
      call.expectDType(operand, dtype);
      call.expectShape(operand, call.shape(operand) == ys ? ys : xs);
    }
    call.require(xs.size() >= 3 && ys.size() == xs.size() && xs[0] == ys[0] && xs[1] == ys[1],
                 "x " + toString(xs) + " and y " + toString(ys) + " must have one rank, 3 to 5, and the same channels");
    const std::vector<int64_t> size = call.integers("window");
    for (int64_t extent : size)
      call.require(extent >= 1, "attribute 'window' must not hold " + std::to_string(extent));
    window = Window(call, {xs.begin() + 2, xs.end()}, {size.begin(), size.end()}, {ys.begin() + 2, ys.end()});
    planes = xs[0] * xs[1];
  }

  Window window;
  int64_t planes = 0;
  DType dtype = DType::F32;
};

/// body(place, Extents) for every place of the result, in row-major order.
template <typename Body> void forEachPlace(const Extents &extents, Body body) {
  int64_t place = 0;
  for (int64_t a = 0; a < extents[0]; ++a)
    for (int64_t b = 0; b < extents[1]; ++b)
      for (int64_t c = 0; c < extents[2]; ++c)
        body(place++, Extents{a, b, c});
}

/// body(i) with the index in a plane of every element of the window at `place` that lies in the input, in row-major
/// order.
template <typename Body> void forEachElement(const Window &w, const Extents &place, Body body) {
  const Window::Range a = w.elementsOf(0, place[0]), b = w.elementsOf(1, place[1]), c = w.elementsOf(2, place[2]);
  for (int64_t z = a.first; z < a.end; ++z)
    for (int64_t i = b.first; i < b.end; ++i)
      for (int64_t j = c.first; j < c.end; ++j)
        body((w.position(0, place[0], z) * w.input[1] + w.position(1, place[1], i)) * w.input[2] +
             w.position(2, place[2], j));
}

} // namespace ds::kernels
