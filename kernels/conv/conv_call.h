//===- conv_call.h - the calls of conv, conv_input_grad, conv_weight_grad --===//
#pragma once

#include "kernels/conv/window_call.h"

namespace ds::kernels {

/// x [samples, groups * channels, in...], w [groups * filters, channels, window...], y [samples, groups * filters,
/// out...].
struct ConvCall {
  /// The names of the operands that are x, w and y or have their shapes.
  ConvCall(const Call &call, std::string_view x, std::string_view w, std::string_view y)
      : workspace(call.workspace()), dtype(call.dtype()) {
    const Shape &xs = call.shape(x), &ws = call.shape(w), &ys = call.shape(y);
    call.require(xs.size() >= 3 && ws.size() == xs.size() && ys.size() == xs.size(),
                 "x " + toString(xs) + ", w " + toString(ws) + " and y " + toString(ys) +
                     " must have one rank, 3 to 5");
    window = Window(call, {xs.begin() + 2, xs.end()}, {ws.begin() + 2, ws.end()}, {ys.begin() + 2, ys.end()});
    groups = call.integer("groups");
    samples = xs[0];
    call.require(groups >= 1 && xs[1] % groups == 0 && ws[0] % groups == 0 && ws[1] == xs[1] / groups &&
                     ys[0] == samples && ys[1] == ws[0],
                 "x " + toString(xs) + ", w " + toString(ws) + " and y " + toString(ys) + " with " +
                     std::to_string(groups) + " groups are no convolution");
    channels = ws[1];
    filters = ws[0] / groups;
  }

  /// The first element of a group's channels (or filters) of a sample.
  int64_t xOffset(int64_t sample, int64_t group) const {
    return (sample * groups + group) * channels * window.inputs();
  }
  int64_t yOffset(int64_t sample, int64_t group) const {
    return (sample * groups + group) * filters * window.outputs();
  }
  int64_t wOffset(int64_t group) const { return group * filters * taps(); }
  /// Products of one element of y.
  int64_t taps() const { return channels * window.windows(); }
  /// Whether the windows of x are x itself.
  bool isPointwise() const {
    return window.windows() == 1 && window.strides == Extents{1, 1, 1} && window.low == Extents{0, 0, 0} &&
           window.input == window.output;
  }

  Window window;
  int64_t samples = 0, groups = 1, channels = 0, filters = 0;
  CallWorkspace workspace;
  DType dtype;
};

struct ConvForwardCall : ConvCall {
  explicit ConvForwardCall(const Call &call) : ConvCall(call, "x", "w", "y"), bias(call.flag("bias")), y(call["y"]) {
    if (bias)
      call.expectShape("bias", {groups * filters});
  }

  bool bias;
  size_t y;
};

struct ConvInputGradCall : ConvCall {
  explicit ConvInputGradCall(const Call &call) : ConvCall(call, "dx", "w", "dy") {}
};

struct ConvWeightGradCall : ConvCall {
  explicit ConvWeightGradCall(const Call &call) : ConvCall(call, "x", "dw", "dy") {}
};

} // namespace ds::kernels
