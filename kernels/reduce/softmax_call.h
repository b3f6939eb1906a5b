//===- softmax_call.h - the calls of softmax, log_softmax and their gradients --===//
#pragma once

#include "kernels/Call.h"

namespace ds::kernels {

struct SoftmaxCall {
  /// `operands` tensors of one type.
  SoftmaxCall(const Call &call, size_t operands, bool logarithm) : logarithm(logarithm) {
    call.expectOperands(operands);
    call.expectFloat(0);
    for (size_t i = 1; i < operands; ++i)
      call.expectLike(i, 0);
    view = viewAlong(call.shape(0), call.axis(call.shape(0)));
  }

  AxisView view{};
  bool logarithm;
};

} // namespace ds::kernels
