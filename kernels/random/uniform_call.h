//===- uniform_call.h - the call of uniform ------------------------------===//
#pragma once

#include "kernels/Philox.h"
#include "kernels/random/element_numbers_call.h"

#include <cstdint>

namespace ds::kernels {

struct UniformCall {
  explicit UniformCall(const Call &call)
      : numbers(call, call.shape("y")), elements(call.elements("y")), dtype(call.dtype()),
        opId(uint32_t(call.integerIn("op_id", 0, UINT32_MAX))) {}

  ElementNumbers numbers;
  int64_t elements;
  DType dtype;
  uint32_t opId;
};

} // namespace ds::kernels
