//===- adagrad_call.h - the call of adagrad ------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

/// p rw, g, sum rw, lr f64 [], step i64 [], clip f64 [].
struct AdagradCall {
  explicit AdagradCall(const Call &call) {
    call.expectOperands(6);
    call.expectFloat(0);
    call.expectLike(1, 0);
    call.expectLike(2, 0);
    call.expectScalar(3, DType::F64);
    call.expectScalar(4, DType::I64);
    call.expectScalar(5, DType::F64);
    elements = call.elements(0);
    dtype = call.dtype(0);
    epsilon = call.number("epsilon");
    weightDecay = call.number("weight_decay");
    lrDecay = call.number("lr_decay");
  }

  /// What this update multiplies with, as torch computes it: in float64.
  double rate(double lr, int64_t step) const { return lr / (1 + double(step) * lrDecay); }

  int64_t elements = 0;
  DType dtype = DType::F32;
  double epsilon = 0, weightDecay = 0, lrDecay = 0;
};

} // namespace ds::kernels
