//===- softmax_call.h - the calls of softmax, log_softmax and their gradients --===//
#pragma once

#include "kernels/Call.h"

namespace ds::kernels {

struct SoftmaxCall {
  SoftmaxCall(const Call &call, std::string_view kernel)
      : view(viewAlong(call.shape("y"), call.axis(call.shape("y")))), logarithm(kernel.starts_with("log_")),
        dtype(call.dtype()) {}

  AxisView view;
  bool logarithm;
  DType dtype;
};

} // namespace ds::kernels
