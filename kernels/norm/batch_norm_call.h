//===- batch_norm_call.h - the calls of batch_norm and batch_norm_grad ---===//
#pragma once

#include "kernels/Call.h"

namespace ds::kernels {

/// batch_norm or its gradient: x [samples, channels, places...].
struct BatchNormCall {
  explicit BatchNormCall(const Call &call) : dtype(call.dtype()) {
    const Shape &shape = call.shape("x");
    samples = shape[0];
    channels = shape[1];
    for (size_t d = 2; d < shape.size(); ++d)
      places *= shape[d];
    if (call.has("epsilon"))
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
  DType dtype;
  double epsilon = 0;
};

} // namespace ds::kernels
