//===- lion_call.h - the call of lion -------------------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/optimizer/one_cycle.h"

#include <cstdint>

namespace ds::kernels {

struct LionCall {
  explicit LionCall(const Call &call) : elements(call.elements("p")), dtype(call.dtype()), gradient(call.dtype("g")) {
    beta1 = call.numberIn("beta1", 0, 1);
    beta2 = call.numberIn("beta2", 0, 1);
    weightDecay = call.number("weight_decay");
    cycled = call.flag("cycled");
  }

  int64_t elements;
  DType dtype;
  DType gradient; ///< g's, which may have 16 bits
  double beta1 = 0, beta2 = 0, weightDecay = 0;
  bool cycled = false; ///< beta1 is the last operand's
};

} // namespace ds::kernels
