//===- window_call.h - a window that moves over the places of [N, C, ...] --===//
#pragma once

#include "kernels/Call.h"

#include <algorithm>
#include <array>

namespace ds::kernels {

/// Three spatial dimensions; a tensor that has fewer has leading ones of size 1.
using Extents = std::array<int64_t, 3>;

/// Element k of the window at place o lies at o * strides + k * dilations - low of the input, or outside of it.
struct Window {
  Window() = default;
  /// Attributes strides, dilations and low; `in`, `size` and `out` are the spatial dimensions of operands.
  Window(const Call &call, const Shape &in, const Shape &size, const Shape &out) {
    call.require(in.size() >= 1 && in.size() <= 3,
                 "one to three spatial dimensions are supported, not " + std::to_string(in.size()));
    call.require(size.size() == in.size() && out.size() == in.size(), "the window " + toString(size) +
                                                                          " and the result " + toString(out) +
                                                                          " must have the input's spatial dimensions");
    input = spread(in);
    window = spread(size);
    output = spread(out);
    strides = attribute(call, "strides", in.size(), 1);
    dilations = attribute(call, "dilations", in.size(), 1);
    low = attribute(call, "low", in.size(), 0);
    for (int64_t extent : window)
      call.require(extent <= largest, "the window " + toString(size) + " is too large");
  }

  /// Row-major, leading dimensions 1.
  static Extents spread(const Shape &shape) {
    Extents extents{1, 1, 1};
    std::copy(shape.begin(), shape.end(), extents.end() - long(shape.size()));
    return extents;
  }
  static int64_t count(const Extents &extents) { return extents[0] * extents[1] * extents[2]; }
  int64_t inputs() const { return count(input); }
  int64_t windows() const { return count(window); }
  int64_t outputs() const { return count(output); }

  /// Where element k of the window at place o lies along dimension d; outside of [0, input[d]): nowhere.
  int64_t position(size_t d, int64_t o, int64_t k) const { return o * strides[d] + k * dilations[d] - low[d]; }

  /// The places [first, end) along dimension d whose element k lies in the input.
  struct Range {
    int64_t first, end;
  };
  Range placesOf(size_t d, int64_t k) const {
    const int64_t start = position(d, 0, k), first = start >= 0 ? 0 : piecesOf(-start, strides[d]);
    const int64_t end = start >= input[d] ? 0 : piecesOf(input[d] - start, strides[d]);
    return {std::min(first, output[d]), std::clamp(end, std::min(first, output[d]), output[d])};
  }

  /// The elements [first, end) along dimension d that lie in the input for the window at place o.
  Range elementsOf(size_t d, int64_t o) const {
    const int64_t start = position(d, o, 0), first = start >= 0 ? 0 : piecesOf(-start, dilations[d]);
    const int64_t end = start >= input[d] ? 0 : piecesOf(input[d] - start, dilations[d]);
    return {std::min(first, window[d]), std::clamp(end, std::min(first, window[d]), window[d])};
  }

  Extents input{1, 1, 1}, window{1, 1, 1}, output{1, 1, 1}, strides{1, 1, 1}, dilations{1, 1, 1}, low{0, 0, 0};

private:
  /// So that no position overflows.
  static constexpr int64_t largest = int64_t(1) << 24;

  static Extents attribute(const Call &call, const char *name, size_t dims, int64_t least) {
    const std::vector<int64_t> entries = call.integers(name);
    call.require(entries.size() == dims, std::string("attribute '") + name + "' must have " + std::to_string(dims) +
                                             " entries, not " + std::to_string(entries.size()));
    Extents extents{least, least, least};
    std::copy(entries.begin(), entries.end(), extents.end() - long(dims));
    for (int64_t entry : entries)
      call.require(entry >= least && entry <= largest, std::string("attribute '") + name + "' must be in [" +
                                                           std::to_string(least) + ", 2^24], not " +
                                                           std::to_string(entry));
    return extents;
  }
};

} // namespace ds::kernels
