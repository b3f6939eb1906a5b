//===- pool_call.h - the calls of max_pool, average_pool and their gradients --===//
#pragma once

#include "kernels/conv/window_call.h"

namespace ds::kernels {

/// x [planes, in...] and y [planes, out...]: two leading dimensions, samples and channels, are one here.
struct PoolCall {
  /// The names of the operands that are x and y or have their shapes.
  PoolCall(const Call &call, std::string_view x, std::string_view y) : dtype(call.dtype()) {
    const Shape &xs = call.shape(x), &ys = call.shape(y);
    call.require(xs.size() >= 3 && ys.size() == xs.size(),
                 "x " + toString(xs) + " and y " + toString(ys) + " must have one rank, 3 to 5");
    const std::vector<int64_t> size = call.integers("window");
    for (int64_t extent : size)
      call.require(extent >= 1, "attribute 'window' must not hold " + std::to_string(extent));
    window = Window(call, {xs.begin() + 2, xs.end()}, {size.begin(), size.end()}, {ys.begin() + 2, ys.end()});
    planes = xs[0] * xs[1];
  }

  Window window;
  int64_t planes = 0;
  DType dtype;
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
