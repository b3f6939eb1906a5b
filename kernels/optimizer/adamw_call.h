//===- adamw_call.h - the call of adamw ----------------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/optimizer/one_cycle.h"

#include <cmath>
#include <cstdint>
#include <string>

namespace ds::kernels {

struct AdamWCall {
  explicit AdamWCall(const Call &call)
      : elements(call.elements("p")), dtype(call.dtype()), gradient(call.dtype("g")), moments(call.dtype("m")) {
    const bool isNarrow = isNarrowFloat(dtype);
    call.require(gradient == dtype || !isNarrow, "operand 1 (g) must have the type of p, " + std::string(name(dtype)));
    call.require(moments == dtype || (isNarrow && moments == DType::F32), "operand 2 (m) must have the type of p, " +
                                                                              std::string(name(dtype)) +
                                                                              (isNarrow ? ", or float32" : ""));
    call.require(call.dtype("v") == moments, "operand 3 (v) must have the type of m, " + std::string(name(moments)));
    beta1 = call.numberIn("beta1", 0, 1);
    beta2 = call.numberIn("beta2", 0, 1);
    epsilon = call.number("epsilon");
    weightDecay = call.number("weight_decay");
    decoupled = call.flag("adam_w_mode");
    cycled = call.flag("cycled");
  }

  int64_t elements;
  DType dtype;
  DType gradient; ///< g's, which may have 16 bits
  DType moments;  ///< those of m and v: p's, or float32 where p has 16 bits
  double beta1 = 0, beta2 = 0, epsilon = 0, weightDecay = 0;
  bool decoupled = true; ///< AdamW; else weight decay is added to the gradient (Adam)
  bool cycled = false;   ///< beta1 is the last operand's
};

/// What one update needs besides the tensors, as torch computes it: in float64.
struct AdamWScalars {
  AdamWScalars(const AdamWCall &call, double lr, int64_t step, double clip, double beta1)
      : beta1(beta1), clip(clip), stepSize(lr / (1 - std::pow(beta1, double(step) + 1))),
        correction2(std::sqrt(1 - std::pow(call.beta2, double(step) + 1))), decay(1 - lr * call.weightDecay) {}

  double beta1, clip, stepSize, correction2, decay;
};

} // namespace ds::kernels
