//===- batch_norm_call.h - the calls of batch_norm and batch_norm_grad ---===//
#pragma once

#include "kernels/Call.h"

namespace ds::kernels {

/// x, gamma, beta, y, mean, variance, rstd: x, y [samples, channels, places...]; the others [channels].
struct BatchNormCall {
  explicit BatchNormCall(const Call &call) {
    call.expectOperands(7);
    shapes(call, 0);
    call.expectLike(3, 0);
    for (size_t operand : {1, 2, 4, 5, 6})
      perChannel(call, operand);
    epsilon = call.number("epsilon");
    call.require(epsilon >= 0, "attribute 'epsilon' must not be negative");
  }

  /// Where the places of a channel of a sample begin.
  int64_t offset(int64_t sample, int64_t channel) const { return (sample * channels + channel) * places; }
  /// body(i) for every element of a channel.
  template <typename Body> void forEach(int64_t channel, Body body) const {
    for (int64_t n = 0; n < samples; ++n)
      for (int64_t i = 0; i < places; ++i)
        body(offset(n, channel) + i);
  }

  int64_t samples = 0, channels = 0, places = 1;
  DType dtype = DType::F32;
  double epsilon = 0;

protected:
  BatchNormCall() = default;

  void shapes(const Call &call, size_t x) {
    call.expectFloat(x);
    const Shape &shape = call.shape(x);
    call.require(shape.size() >= 2, "x must have at least two dimensions, not shape " + toString(shape));
    dtype = call.dtype(x);
    samples = shape[0];
    channels = shape[1];
    for (size_t d = 2; d < shape.size(); ++d)
      places *= shape[d];
  }

  void perChannel(const Call &call, size_t operand) const {
    call.expectDType(operand, dtype);
    call.expectShape(operand, {channels});
  }
};

/// dy, x, gamma, mean, rstd, dx, dgamma, dbeta.
struct BatchNormGradCall : BatchNormCall {
  explicit BatchNormGradCall(const Call &call) {
    call.expectOperands(8);
    shapes(call, 1);
    call.expectLike(0, 1);
    call.expectLike(5, 1);
    for (size_t operand : {2, 3, 4, 6, 7})
      perChannel(call, operand);
  }
};

} // namespace ds::kernels
