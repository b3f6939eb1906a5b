//===- sgd_call.h - the call of sgd --------------------------------------===//
#pragma once

#include "kernels/Call.h"

#include <cstdint>

namespace ds::kernels {

struct SgdCall {
  explicit SgdCall(const Call &call)
      : elements(call.elements("p")), dtype(call.dtype()), gradient(call.dtype("g")), tensors(call["lr"]) {
    momentum = call.number("momentum");
    call.require(momentum >= 0, "attribute 'momentum' must not be negative");
    weightDecay = call.number("weight_decay");
    nesterov = call.flag("nesterov");
    call.require(!nesterov || momentum > 0, "attribute 'nesterov' needs momentum");
  }

  int64_t elements;
  DType dtype;
  DType gradient; ///< g's, which may have 16 bits
  size_t tensors; ///< operands before lr
  double momentum = 0, weightDecay = 0;
  bool nesterov = false;
};

} // namespace ds::kernels
