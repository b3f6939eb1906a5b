//===- cycled_momentum_call.h - the call of cycled_momentum, and its schedule --===//
//
// The first beta of update number j under DeepSpeed's OneCycle: min at j = 0, max - (max - min) scale(j) within the
// cycle (one_cycle.h), then max * decay(j).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/optimizer/one_cycle.h"

namespace ds::kernels {

/// step, momentum.
struct CycledMomentumCall {
  explicit CycledMomentumCall(const Call &call)
      : minimum(call.number("cycle_min_mom")), maximum(call.number("cycle_max_mom")),
        rate(call.number("decay_mom_rate")), cycle(call) {}

  /// Of update number j >= 0.
  DS_HOST_DEVICE double at(int64_t j) const {
    if (j == 0) // DeepSpeed's schedulers set their first value otherwise than their formula does
      return minimum;
    return cycle.isCycling(j) ? maximum - (maximum - minimum) * cycle.scale(j) : maximum * cycle.decay(j, rate);
  }

  double minimum, maximum, rate;
  OneCycle cycle;
};

} // namespace ds::kernels
