//===- window_space.h - windows over planes, for a launch ---------===//
#pragma once

#include "kernels/HostDevice.h"
#include "kernels/conv/window_call.h"

namespace ds::kernels::cuda {

/// calls/window.h's Window as plain numbers, passed by value.
struct WindowSpace {
  explicit WindowSpace(const Window &w) {
    for (size_t d = 0; d < 3; ++d) {
      input[d] = w.input[d];
      window[d] = w.window[d];
      output[d] = w.output[d];
      strides[d] = w.strides[d];
      dilations[d] = w.dilations[d];
      low[d] = w.low[d];
    }
  }

  struct Range {
    int64_t first, end;
  };

  DS_HOST_DEVICE int64_t inputs() const { return input[0] * input[1] * input[2]; }
  DS_HOST_DEVICE int64_t outputs() const { return output[0] * output[1] * output[2]; }
  DS_HOST_DEVICE int64_t taps() const { return window[0] * window[1] * window[2]; }

  /// The elements of the window at place `o` along dimension d that lie in the input.
  DS_HOST_DEVICE Range elementsOf(int d, int64_t o) const {
    const int64_t start = o * strides[d] - low[d];
    const int64_t first = start >= 0 ? 0 : ceilDiv(-start, dilations[d]);
    const int64_t end = start >= input[d] ? 0 : ceilDiv(input[d] - start, dilations[d]);
    return within(first, end, window[d]);
  }

  /// The places along dimension d whose windows could hold position `i` (where a dilation leaves holes, not all do).
  DS_HOST_DEVICE Range placesAround(int d, int64_t i) const {
    const int64_t reach = i + low[d] - (window[d] - 1) * dilations[d]; // o * strides must be at least this
    const int64_t first = reach <= 0 ? 0 : ceilDiv(reach, strides[d]);
    const int64_t end = i + low[d] < 0 ? 0 : (i + low[d]) / strides[d] + 1;
    return within(first, end, output[d]);
  }

  /// body(index in the plane) for the elements of the window at place (a, b, c) that lie in the input, in row-major
  /// order.
  template <typename Body> DS_HOST_DEVICE void forEachElement(const int64_t *place, Body body) const {
    const Range a = elementsOf(0, place[0]), b = elementsOf(1, place[1]), c = elementsOf(2, place[2]);
    for (int64_t z = a.first; z < a.end; ++z)
      for (int64_t y = b.first; y < b.end; ++y)
        for (int64_t x = c.first; x < c.end; ++x)
          body((position(0, place[0], z) * input[1] + position(1, place[1], y)) * input[2] + position(2, place[2], x));
  }

  /// The same with body(element of the window, index in the plane).
  template <typename Body> DS_HOST_DEVICE void forEachTap(const int64_t *place, Body body) const {
    const Range a = elementsOf(0, place[0]), b = elementsOf(1, place[1]), c = elementsOf(2, place[2]);
    for (int64_t z = a.first; z < a.end; ++z)
      for (int64_t y = b.first; y < b.end; ++y)
        for (int64_t x = c.first; x < c.end; ++x)
          body((z * window[1] + y) * window[2] + x,
               (position(0, place[0], z) * input[1] + position(1, place[1], y)) * input[2] + position(2, place[2], x));
  }

  DS_HOST_DEVICE int64_t countOf(const int64_t *place) const {
    int64_t count = 1;
    for (int d = 0; d < 3; ++d) {
      const Range range = elementsOf(d, place[d]);
      count *= range.end - range.first;
    }
    return count;
  }

  /// body(place, its row-major index) for the places around the element at `index` of the plane, in row-major order.
  template <typename Body> DS_HOST_DEVICE void forEachPlaceAround(int64_t index, Body body) const {
    const Range a = placesAround(0, index / (input[1] * input[2])), b = placesAround(1, index / input[2] % input[1]),
                c = placesAround(2, index % input[2]);
    for (int64_t z = a.first; z < a.end; ++z)
      for (int64_t y = b.first; y < b.end; ++y)
        for (int64_t x = c.first; x < c.end; ++x) {
          const int64_t place[3] = {z, y, x};
          body(place, (z * output[1] + y) * output[2] + x);
        }
  }

  /// Which element of the window at `place` lies on the element at `index` of the plane; -1: none.
  DS_HOST_DEVICE int64_t tapAt(const int64_t *place, int64_t index) const {
    const int64_t at[3] = {index / (input[1] * input[2]), index / input[2] % input[1], index % input[2]};
    int64_t tap = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t from = at[d] + low[d] - place[d] * strides[d];
      if (from < 0 || from % dilations[d] != 0 || from / dilations[d] >= window[d])
        return -1;
      tap = tap * window[d] + from / dilations[d];
    }
    return tap;
  }
  /// Where element `tap` of the window at place `o` (row-major) lies in the plane; -1: outside.
  DS_HOST_DEVICE int64_t positionOf(int64_t o, int64_t tap) const {
    const int64_t place[3] = {o / (output[1] * output[2]), o / output[2] % output[1], o % output[2]};
    const int64_t k[3] = {tap / (window[1] * window[2]), tap / window[2] % window[1], tap % window[2]};
    int64_t index = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t at = position(d, place[d], k[d]);
      if (at < 0 || at >= input[d])
        return -1;
      index = index * input[d] + at;
    }
    return index;
  }

  /// The index of the first largest element of a window (the first NaN, if there is one); -1 if it is empty.
  /// `at(i)` is element i of the plane.
  template <typename At> DS_HOST_DEVICE int64_t firstLargest(const int64_t *place, At at) const {
    int64_t largest = -1;
    forEachElement(place, [&](int64_t i) {
      if (largest < 0 || at(i) > at(largest) || (at(i) != at(i) && at(largest) == at(largest)))
        largest = i;
    });
    return largest;
  }

  int64_t input[3], window[3], output[3], strides[3], dilations[3], low[3];

private:
  DS_HOST_DEVICE static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
  DS_HOST_DEVICE static Range within(int64_t first, int64_t end, int64_t size) {
    first = first < size ? first : size;
    end = end < size ? end : size;
    return {first, end > first ? end : first};
  }
  DS_HOST_DEVICE int64_t position(int d, int64_t o, int64_t k) const {
    return o * strides[d] + k * dilations[d] - low[d];
  }
};

} // namespace ds::kernels::cuda
