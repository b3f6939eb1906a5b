//===- dropout_call.h - the call of dropout ------------------------------===//
#pragma once

#include "kernels/Philox.h"
#include "kernels/random/element_numbers_call.h"

#include <cstdint>

namespace ds::kernels {

struct DropoutCall {
  explicit DropoutCall(const Call &call) : numbers(call, call.shape("x")) {
    elements = call.elements("x");
    dtype = call.dtype();
    const double ratio = call.numberIn("ratio", 0, 1);
    opId = uint32_t(call.integerIn("op_id", 0, UINT32_MAX));
    threshold = dropoutThreshold(ratio);
    // Without a chance to drop there is nothing to make up for; ratio 1 keeps nothing.
    scale = threshold == 0 || ratio >= 1 ? 1 : 1 / (1 - ratio);
  }

  ElementNumbers numbers;
  int64_t elements = 0;
  DType dtype = DType::F32;
  uint32_t opId = 0;
  uint64_t threshold = 0;
  double scale = 1;
};

} // namespace ds::kernels
