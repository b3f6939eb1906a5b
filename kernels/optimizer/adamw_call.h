//===- adamw_call.h - the call of adamw ----------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <cmath>
#include <cstdint>

namespace ds::kernels {

/// p rw, g, m rw, v rw, lr f64 [], step i64 [], clip f64 [].
struct AdamWCall {
  explicit AdamWCall(const Call &call) {
    call.expectOperands(7);
    call.expectFloat(0);
    for (size_t i = 1; i < 4; ++i)
      call.expectLike(i, 0);
    call.expectScalar(4, DType::F64);
    call.expectScalar(5, DType::I64);
    call.expectScalar(6, DType::F64);
    elements = call.elements(0);
    dtype = call.dtype(0);
    beta1 = call.numberIn("beta1", 0, 1);
    beta2 = call.numberIn("beta2", 0, 1);
    epsilon = call.number("epsilon");
    weightDecay = call.number("weight_decay");
    decoupled = call.flag("adam_w_mode");
  }

  int64_t elements = 0;
  DType dtype = DType::F32;
  double beta1 = 0, beta2 = 0, epsilon = 0, weightDecay = 0;
  bool decoupled = true; ///< AdamW; else weight decay is added to the gradient (Adam)
};

/// What one update needs besides the tensors, as torch computes it: in float64.
struct AdamWScalars {
  AdamWScalars(const AdamWCall &call, double lr, int64_t step, double clip)
      : clip(clip), stepSize(lr / (1 - std::pow(call.beta1, double(step) + 1))),
        correction2(std::sqrt(1 - std::pow(call.beta2, double(step) + 1))), decay(1 - lr * call.weightDecay) {}

  double clip, stepSize, correction2, decay;
};

} // namespace ds::kernels
