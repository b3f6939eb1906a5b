//===- lamb_call.h - the call of lamb -------------------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"
#include "kernels/optimizer/one_cycle.h"

#include <cmath>
#include <cstdint>

namespace ds::kernels {

struct LambCall {
  explicit LambCall(const Call &call) : elements(call.elements("p")), dtype(call.dtype()), gradient(call.dtype("g")) {
    beta1 = call.numberIn("beta1", 0, 1);
    beta2 = call.numberIn("beta2", 0, 1);
    epsilon = call.number("epsilon");
    weightDecay = call.number("weight_decay");
    biasCorrection = call.flag("bias_correction");
    maxCoeff = call.number("max_coeff");
    minCoeff = call.number("min_coeff");
    call.require(minCoeff >= 0 && minCoeff <= maxCoeff, "'min_coeff' must be at least 0 and at most 'max_coeff'");
    cycled = call.flag("cycled");
  }

  int64_t elements;
  DType dtype;
  DType gradient; ///< g's, which may have 16 bits
  double beta1 = 0, beta2 = 0, epsilon = 0, weightDecay = 0, maxCoeff = 0, minCoeff = 0;
  bool biasCorrection = true; ///< of the step's size alone: the trust ratio is of moments that are not corrected
  bool cycled = false;        ///< beta1 is the last operand's
};

/// The learning rate of an update, with the factors of both bias corrections.
inline DS_HOST_DEVICE double lambStepSize(bool corrected, double lr, int64_t step, double beta1, double beta2) {
  const double next = double(step) + 1;
  return corrected ? lr * std::sqrt(1 - std::pow(beta2, next)) / (1 - std::pow(beta1, next)) : lr;
}

/// How far to go along an update: |p| / |update| within the bounds, 1 where either norm is 0.
inline DS_HOST_DEVICE double trustRatio(double parameterSquares, double updateSquares, double minCoeff,
                                        double maxCoeff) {
  if (parameterSquares == 0 || updateSquares == 0)
    return 1;
  const double ratio = std::sqrt(parameterSquares) / std::sqrt(updateSquares);
  return ratio > maxCoeff ? maxCoeff : ratio < minCoeff ? minCoeff : ratio;
}

} // namespace ds::kernels
