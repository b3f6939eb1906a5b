//===- sgd_call.h - the call of sgd --------------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

/// p rw, g, [momentum_buffer rw], lr f64 [], step i64 [], clip f64 [].
struct SgdCall {
  explicit SgdCall(const Call &call) {
    momentum = call.number("momentum");
    call.require(momentum >= 0, "attribute 'momentum' must not be negative");
    tensors = momentum > 0 ? 3 : 2;
    call.expectOperands(tensors + 3);
    call.expectFloat(0);
    for (size_t i = 1; i < tensors; ++i)
      call.expectLike(i, 0);
    call.expectScalar(tensors, DType::F64);
    call.expectScalar(tensors + 1, DType::I64);
    call.expectScalar(tensors + 2, DType::F64);
    elements = call.elements(0);
    dtype = call.dtype(0);
    weightDecay = call.number("weight_decay");
    nesterov = call.flag("nesterov");
    call.require(!nesterov || momentum > 0, "attribute 'nesterov' needs momentum");
  }

  int64_t elements = 0;
  DType dtype = DType::F32;
  size_t tensors = 2; ///< operands before lr
  double momentum = 0, weightDecay = 0;
  bool nesterov = false;
};

} // namespace ds::kernels
