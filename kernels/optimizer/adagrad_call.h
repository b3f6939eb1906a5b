//===- adagrad_call.h - the call of adagrad ------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

struct AdagradCall {
  explicit AdagradCall(const Call &call)
      : elements(call.elements("p")), dtype(call.dtype()), gradient(call.dtype("g")) {
    epsilon = call.number("epsilon");
    weightDecay = call.number("weight_decay");
    lrDecay = call.number("lr_decay");
  }

  /// What this update multiplies with, as torch computes it: in float64.
  double rate(double lr, int64_t step) const { return lr / (1 + double(step) * lrDecay); }

  int64_t elements;
  DType dtype;
  DType gradient; ///< g's, which may have 16 bits
  double epsilon = 0, weightDecay = 0, lrDecay = 0;
};

} // namespace ds::kernels
