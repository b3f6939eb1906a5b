//===- online_softmax.h - log sum exp of numbers that come one after the other --===//
//
// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018. Parts combine in any grouping.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/HostDevice.h"

#include <cmath>

namespace ds::kernels::cuda {

/// The largest of some numbers, and the sum of exp(number - largest).
template <typename T> struct MaxSum {
  T largest = T(-HUGE_VAL), sum = T(0);

  DS_HOST_DEVICE void add(T x) { *this = combined(*this, {x, T(1)}); }

  DS_HOST_DEVICE static MaxSum combined(MaxSum a, MaxSum b) {
    const T largest = a.largest > b.largest || a.largest != a.largest ? a.largest : b.largest;
    // The one that is the largest keeps its sum: no exponential, and no infinity less infinity.
    const T ofA = a.largest == largest ? a.sum : a.sum * std::exp(a.largest - largest);
    const T ofB = b.largest == largest ? b.sum : b.sum * std::exp(b.largest - largest);
    return {largest, ofA + ofB};
  }

  /// log sum exp; NaN where the largest is infinite, as softmax of such a row is.
  DS_HOST_DEVICE T logSum() const { return largest - largest == T(0) ? largest + std::log(sum) : T(NAN); }
};

} // namespace ds::kernels::cuda
