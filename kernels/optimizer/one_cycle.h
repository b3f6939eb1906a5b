//===- one_cycle.h - where a cycle of OneCycle stands ---------------------===//
//
// Smith, "A disciplined approach to neural network hyper-parameters", 2018, as DeepSpeed computes it: the scale rises
// from 0 to 1 over `first` updates and falls to 0 over `second`; with stairs, it is rounded down to a multiple of 1 /
// stairs. After the cycle there is a decay, which counts in units of `decayStep` updates (0: none).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"

#include <cmath>
#include <cstdint>

namespace ds::kernels {

struct OneCycle {
  OneCycle() = default;
  explicit OneCycle(const Call &call)
      : first(double(call.integerIn("cycle_first_step_size", 1, INT64_MAX))),
        second(double(call.integerIn("cycle_second_step_size", 0, INT64_MAX))),
        firstStairs(double(call.integerIn("cycle_first_stair_count", 0, INT64_MAX))),
        secondStairs(double(call.integerIn("cycle_second_stair_count", 0, INT64_MAX))),
        decayStep(double(call.integerIn("decay_step_size", 0, INT64_MAX))) {}

  /// Update number j is the cycle's, or one of the decay.
  DS_HOST_DEVICE bool isCycling(int64_t j) const { return double(j) <= first + second; }

  /// From 0 to 1, of update j <= first + second. Its arithmetic is DeepSpeed's, rounding included.
  DS_HOST_DEVICE double scale(int64_t j) const {
    const double whole = first + second, peak = first / whole, done = double(j) / whole;
    const double x = 1 + done - std::floor(1 + done);
    const bool rises = x <= peak;
    const double stairs = rises ? firstStairs : secondStairs;
    if (stairs == 0)
      return rises ? x / peak : (x - 1) / (peak - 1);
    const double at = std::fmod(double(j), whole);
    return std::floor(at <= first ? at * stairs / first : (whole - at) * stairs / second) / stairs;
  }

  /// 1 + rate * (decay steps since the cycle's end), of a later update j.
  DS_HOST_DEVICE double decay(int64_t j, double rate) const {
    return decayStep == 0 ? 1 : 1 + rate * ((double(j) - (first + second)) / decayStep);
  }

  double first = 1, second = 0, firstStairs = 0, secondStairs = 0, decayStep = 0; ///< updates and counts, all whole
};

/// beta1 of an update: the attribute, or operand `momentum` where a schedule cycles it.
template <typename CallT> double beta1Of(const CallT &call, const void *momentum) {
  return call.cycled ? *static_cast<const double *>(momentum) : call.beta1;
}

} // namespace ds::kernels
